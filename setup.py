"""The native scanner, built where there is a compiler; everything else is in pyproject.toml."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "c3prof.readers._scan",
            sources=["c3prof/readers/_scan.c"],
            depends=[f"c3prof/readers/native/{name}.h" for name in ("json", "strings", "columns", "values", "events")],
            optional=True,  # without a compiler the Python scan runs
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
