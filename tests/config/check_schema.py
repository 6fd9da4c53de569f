#!/usr/bin/python3
"""Checks the configuration's JSON Schema with an independent validator.

usage: check_schema.py SCHEMA EXAMPLE

The schema must be valid JSON Schema 2020-12, accept EXAMPLE, and refuse some mistakes.
"""
import copy
import json
import sys

import jsonschema
import yaml

MISTAKES = [
    (("feeds", "gate", "input", "urls"), "x"),
    (("feeds", "Gate"), {}),
    (("defaults", "ring"), 0),
    (("defaults", "input", "timeout"), 10),
    (("defaults", "encodes", "live", "video", "codec"), []),
    (("feeds", "sdi1", "input", "pixel_format"), "rgb48"),
    (("admin", "listen"), "9853"),
    (("device",), "gpu"),
    (("device",), "cuda:007"),
    (("device",), "cuda:999"),
    (("log",), None),
    (("defaults", "outputs", "record", "keep", "min_free"), "5 G"),
    (("defaults", "outputs", "record", "keep", "min_free"), "100%"),
]
RIGHT = [
    (("defaults", "ring"), "${RING:-8}"),
    (("defaults", "encodes", "live", "video"), "copy"),
    (("defaults", "encodes", "live", "video", "codec"), "libx264"),
    (("feeds", "gate", "outputs"), {"record": None}),
    (("feeds", "sdi1", "input", "rate"), 29.97),
    (("admin", "listen"), "[::1]:9853"),
    (("defaults", "outputs", "record", "keep", "min_free"), 5_000_000_000),
    (("defaults", "outputs", "record", "keep", "min_free"), "5G"),
    (("defaults", "outputs", "record", "keep", "min_free"), "0.5%"),
    (("device",), "cuda:0"),
    (("device",), "cuda:127"),
]


def changed(config, path, value):
    config = copy.deepcopy(config)
    place = config
    for key in path[:-1]:
        place = place.setdefault(key, {})
    place[path[-1]] = value
    return config


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        example = yaml.safe_load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    faults = [f"the example: {error.message}" for error in validator.iter_errors(example)]
    faults += [
        f"accepted: {path} = {value!r}"
        for path, value in MISTAKES
        if validator.is_valid(changed(example, path, value))
    ]
    faults += [
        f"refused: {path} = {value!r}"
        for path, value in RIGHT
        if not validator.is_valid(changed(example, path, value))
    ]
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
