"""Paths → Report: find the inputs, analyze rank by rank, put the ranks together.

One rank is in memory at a time; what stays of it is its Part, which is small.
"""
