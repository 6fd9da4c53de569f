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

TRIANGLE = [[0, 0], [0.5, 0], [0.5, 1]]
MISTAKES = [
    (("feeds", "gate", "input", "urls"), "x"),
    (("feeds", "Gate"), {}),
    (("defaults", "ring"), 0),
    (("defaults", "input", "timeout"), 10),
    (("defaults", "encodes", "live", "video", "codec"), []),
    (("feeds", "sdi1", "input", "pixel_format"), "rgb48"),
    (("admin", "listen"), "9853"),
    (("admin", "tokens"), {"write": "x"}),
    (("admin", "tokens"), {"read": []}),
    (("admin", "tls"), {"certificate": "x"}),
    (("admin", "insecure"), "sometimes"),
    (("device",), "gpu"),
    (("device",), "cuda:007"),
    (("device",), "cuda:999"),
    (("log",), None),
    (("defaults", "outputs", "record", "keep", "min_free"), "5 G"),
    (("defaults", "outputs", "record", "keep", "min_free"), "100%"),
    (("defaults", "outputs", "record", "keep", "min_free"), "0%"),
    (("defaults", "outputs", "record", "keep", "min_free"), 0),
    (("defaults", "encodes", "live", "convert", "rotate"), 45),
    (("defaults", "encodes", "live", "convert", "rotate"), 360),
    (("defaults", "encodes", "live", "convert", "rotate"), "-90"),
    (("defaults", "encodes", "live", "convert", "flip"), "both"),
    (("defaults", "encodes", "live", "convert", "size"), "1280"),
    (("defaults", "encodes", "live", "convert", "size"), "0x720"),
    (("defaults", "encodes", "live", "convert", "size"), "-2x-2"),
    (("defaults", "encodes", "live", "convert", "size"), "1280x-1"),
    (("defaults", "encodes", "live", "convert", "size"), "1280x16385"),
    (("defaults", "encodes", "live", "convert", "size"), "50.5%"),
    (("defaults", "encodes", "live", "convert", "size"), "0%"),
    (("defaults", "encodes", "live", "convert", "crop"), "640x480"),
    (("defaults", "encodes", "live", "convert", "crop"), "640x480+0"),
    (("defaults", "encodes", "live", "convert", "crop"), "640x480-8+0"),
    (("defaults", "encodes", "live", "convert", "fit"), "fill"),
    (("defaults", "encodes", "live", "convert", "background"), "black"),
    (("defaults", "encodes", "live", "convert", "background"), "#10101080"),
    (("defaults", "encodes", "live", "convert", "filter"), "lanczos"),
    (("defaults", "encodes", "live", "convert", "rate"), 0),
    (("defaults", "encodes", "live", "convert", "rate"), "0.0"),
    (("defaults", "encodes", "live", "convert", "rate"), "30/0"),
    (("defaults", "encodes", "live", "convert", "zoom"), "2"),
    (("defaults", "encodes", "live", "overlay"), []),
    (("defaults", "encodes", "live", "overlay"), [{"text": "x"}] * 33),
    (("defaults", "encodes", "live", "overlay"), "gate"),
    (("defaults", "encodes", "live", "overlay"), {"text": ""}),
    (("defaults", "encodes", "live", "overlay"), {"text": "a\tb"}),
    (("defaults", "encodes", "live", "overlay"), {"text": "x", "size": "0%"}),
    (("defaults", "encodes", "live", "overlay"), {"text": "x", "size": "0.000%"}),
    (("defaults", "encodes", "live", "overlay"), {"text": "x", "size": "4.1234567%"}),
    (("defaults", "encodes", "live", "overlay"), {"text": "x", "size": 4}),
    (("defaults", "encodes", "live", "overlay"), {"text": "x", "at": "north"}),
    (("defaults", "encodes", "live", "overlay"), {"text": "x", "color": "#12345"}),
    (("defaults", "encodes", "live", "overlay"), {"text": "x", "box": False}),
    (("defaults", "encodes", "live", "overlay"), {"image": "x.png", "width": "100.5%"}),
    (("defaults", "encodes", "live", "overlay"), {"image": "x.png", "opacity": 1.5}),
    (("defaults", "encodes", "live", "overlay"), {"image": "x.png", "opacity": "0.1234567"}),
    (("defaults", "encodes", "live", "overlay"), {"image": "x.png", "height": "4%"}),
    (("feeds", "gate", "mask"), []),
    (("feeds", "gate", "mask"), {"style": "fill"}),
    (("feeds", "gate", "mask"), {"polygon": []}),
    (("feeds", "gate", "mask"), {"polygon": [[0, 0], [1, 1]]}),
    (("feeds", "gate", "mask"), {"polygon": [[0, 0], [1, 1], [0]]}),
    (("feeds", "gate", "mask"), {"polygon": [[0, 0], [1, 1], [0, 0.5, 0.5]]}),
    (("feeds", "gate", "mask"), {"polygon": [[0, 0], [1, 1], [0, 1.01]]}),
    (("feeds", "gate", "mask"), {"polygon": [[0, 0], [1, 1], [0, -0.5]]}),
    (("feeds", "gate", "mask"), {"polygon": [[0, 0], [1, 1], [0, "0.1234567"]]}),
    (("feeds", "gate", "mask"), {"polygon": [[0, 0]] * 1001}),
    (("feeds", "gate", "mask"), {"polygon": TRIANGLE, "style": "blur"}),
    (("feeds", "gate", "mask"), {"polygon": TRIANGLE, "color": "#00000080"}),
    (("feeds", "gate", "skip"), "all"),
    (("feeds", "gate", "skip"), True),
    (("feeds", "lobby", "outputs", "web", "from"), []),
    (("feeds", "lobby", "outputs", "web", "from"), ["P720"]),
    (("feeds", "lobby", "outputs", "web", "from"), {"p720": {}}),
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
    (("defaults", "encodes", "live", "convert"),
     {"crop": "640x480+1+120", "rotate": 90, "flip": "vertical", "size": "1280x-2", "fit": "contain",
      "background": "#10aBcD", "filter": "spline36", "rate": 10}),
    (("defaults", "encodes", "live", "convert"), {"rotate": "270", "size": "-2x720", "rate": "30000/1001"}),
    (("defaults", "encodes", "live", "convert"), {"rotate": 0, "size": "1600%", "rate": "0.5"}),
    (("defaults", "encodes", "live", "convert"), {"rotate": "${TURN}", "size": "853x479"}),
    (("defaults", "encodes", "live", "overlay"), [{"text": "x"}] * 32),
    (("defaults", "encodes", "live", "overlay"),
     {"text": "${feed}\n%F %T", "at": "bottom", "size": "100%", "font": "/x.ttf", "color": "#ffffff80",
      "box": "none"}),
    (("defaults", "encodes", "live", "overlay"),
     [{"image": "x.png", "width": "100.0%", "opacity": 0.8}, {"text": "x", "size": "0.000001%"}]),
    (("feeds", "gate", "encodes"), {"live": {"overlay": None, "convert": {"size": None}}}),
    (("feeds", "gate", "mask"), {"polygon": TRIANGLE, "style": "fill", "color": "#102030"}),
    (("feeds", "gate", "mask"), [{"polygon": TRIANGLE, "style": "pixelate"}, {"polygon": [[0, 0]] * 1000}]),
    (("feeds", "gate", "mask"), {"polygon": [["0.5", "1"], [0.123456, 1.0], ["${X}", 0]]}),
    (("feeds", "gate", "mask"), None),
    (("feeds", "gate", "skip"), "nonkey"),
    (("feeds", "lobby", "outputs", "web", "from"), ["p720", "p480"]),
    (("feeds", "lobby", "outputs", "web", "from"), "p720"),
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
