"""Validates documents against schemas with Python's jsonschema.

Standard input has lines of JSON: {"schema": FILE, "text": DOCUMENT}. Each is answered with true or
false. A schema that is not valid itself, or has a pattern that Python cannot read, ends the program.
"""
import json
import re
import sys

from jsonschema import Draft202012Validator, FormatChecker

checker = FormatChecker()
if "date-time" not in checker.checkers:
    sys.exit("jsonschema does not check date-time: install rfc3339-validator")


def read(path):
    with open(path, encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    compile_patterns(schema)
    return Draft202012Validator(schema, format_checker=checker)


def compile_patterns(part):
    if isinstance(part, dict):
        if isinstance(part.get("pattern"), str):
            re.compile(part["pattern"])
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            compile_patterns(one)


validators = {}
for line in sys.stdin:
    question = json.loads(line)
    path = question["schema"]
    if path not in validators:
        validators[path] = read(path)
    print(json.dumps(validators[path].is_valid(json.loads(question["text"]))))
