"""Codes of `execcred conformance`: `code: cause`, `-> remedy`, `eg example`."""

CONFORMANCE_CODES = """
conformance-not-installed: `execcred conformance` needs stand-in servers whose libraries are not installed here.
-> Install the extra; the tool as one file does not bring the kit.
eg pip install '.[conformance,tool]'
recipe-unusable: The file of --recipe cannot be read, is no JSON object, or has a key or type that no recipe has.
-> Correct what the error names; a recipe says what leads the plugin under test to a credential.
eg execcred conformance --kind=secretreader --recipe=recipe.json -- my-secretreader
report-unwritable: The file of --junit cannot be written.
-> Name a file in a folder that is there and may be written.
eg execcred conformance --kind=any --junit=report.xml -- my-plugin
"""
