import json, numpy as np, re
from dataclasses import dataclass
MISSING=-2**63
@dataclass(frozen=True)
class Damage:
    kind:str; offset:int; length:int; text:str
@dataclass(frozen=True)
class Scan:
    events:dict; ops:dict; device:dict; comm:dict; meta:dict; strings:list; header:dict; counts:dict; damage:tuple
DEV={'kernel','gpu_memcpy','memcpy','gpu_memset','memset','gpu_user_annotation','cuda_sync'}
def scan(blocks):
    d=json.loads(b''.join(blocks)); 
    if isinstance(d,list): d={'traceEvents':d}
    ev=d.pop('traceEvents')
    S={}; L=[]
    def c(x):
        if x is None: return -1
        if not isinstance(x,str): x=json.dumps(x,separators=(',',':'))
        if x not in S: S[x]=len(L); L.append(x)
        return S[x]
    def i(x,a=-1):
        try: return int(x)
        except Exception: return a
    E={k:[] for k in ['ts_ns','dur_ns','ph','cat','name','pid','tid','external_id','correlation']}
    O={k:[] for k in ['row','dims','types','strides','concrete','module']}
    D={k:[] for k in ['row','device','stream','grid','block','shared_memory','registers','occupancy','bytes','graph','graph_node','copy_kind']}
    C={k:[] for k in ['row','collective','dtype','group','group_desc','group_ranks','in_split','out_split','in_elements','out_elements','group_size','seq','rank','src_rank','dst_rank']}
    M={'row':[],'args':[]}
    n=0
    for e in ev:
        ph=e.get('ph'); cat=e.get('cat')
        if ph not in('X','C','M') : continue
        if cat=='python_function' and not e.get('name','').startswith('nn.Module: '): continue
        a=e.get('args') or {}
        r=n; n+=1
        E['ts_ns'].append(round(e['ts']*1000) if 'ts' in e else MISSING); E['dur_ns'].append(round(e['dur']*1000) if 'dur' in e else MISSING)
        for k in('ph','cat','name'): E[k].append(c(e.get(k)))
        for k in('pid','tid'): E[k].append(c(None if e.get(k) is None else str(e[k])))
        E['external_id'].append(i(a.get('External id',a.get('external id')))); E['correlation'].append(i(a.get('correlation')))
        if 'Input Dims' in a or 'Input type' in a:
            O['row'].append(r)
            for k,q in zip(('dims','types','strides'),('Input Dims','Input type','Input Strides')): O[k].append(c(a.get(q)))
            O['concrete'].append(-1);O['module'].append(-1)
        if (cat or '').lower() in DEV:
            D['row'].append(r); D['device'].append(i(a.get('device',e.get('pid')),0)); D['stream'].append(i(a.get('stream',e.get('tid'))))
            D['grid'].append(c(a.get('grid')));D['block'].append(c(a.get('block')))
            D['shared_memory'].append(i(a.get('shared memory')));D['registers'].append(i(a.get('registers per thread')))
            D['occupancy'].append(a.get('est. achieved occupancy %',np.nan));D['bytes'].append(i(a.get('bytes')));D['graph'].append(i(a.get('graph id')));D['graph_node'].append(i(a.get('graph node id')))
            D['copy_kind'].append(c(a.get('kind')))
        if 'Collective name' in a:
            C['row'].append(r)
            for k,q in dict(collective='Collective name',dtype='dtype',group='Process Group Name',group_desc='Process Group Description',group_ranks='Process Group Ranks',in_split='In split size',out_split='Out split size').items(): C[k].append(c(a.get(q)))
            for k,q in dict(in_elements='In msg nelems',out_elements='Out msg nelems',group_size='Group size',seq='Seq',rank='Rank',src_rank='Src Rank',dst_rank='Dst Rank').items(): C[k].append(i(a.get(q)))
        if ph!='X': M['row'].append(r);M['args'].append(c(a))
    f=lambda d,codes: {k:np.array(v,np.float64 if k=='occupancy' else np.int32 if k in codes else np.int64) for k,v in d.items()}
    cs={'ph','cat','name','pid','tid','row','dims','types','strides','concrete','module','grid','block','copy_kind','collective','dtype','group','group_desc','group_ranks','in_split','out_split','args'}
    return Scan(f(E,cs),f(O,cs),f(D,cs),f(C,cs),f(M,cs),L,d,{'events':len(ev)},())
