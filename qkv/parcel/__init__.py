"""Prepared data and runs in parts, small enough for any way to another machine, each with a checksum.

parcel/part-000, …     compressed pieces, one after the other
parcel/parcel.json     what they are pieces of
parcel/manifest.json   the size and SHA-256 of every part
"""
