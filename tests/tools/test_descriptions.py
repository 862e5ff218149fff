# ruff: noqa: E501 - texts as models get them
from __future__ import annotations

from inline_snapshot import snapshot

from pi_notebook.tools import builtin


def test_what_a_model_is_told() -> None:
    assert [tool.describe("anthropic-messages") for tool in builtin()] == snapshot(
        [
            {
                "name": "read",
                "description": "Read a file: text by lines, an image (png, jpg, gif, webp, bmp) as a picture, a notebook (.ipynb) as cells with their outputs. At most 2,000 lines or 50 KB at once; the end of the text says how to go on. Not for folders (ls), for searching (grep, find), or for data that python can load, like large CSV files.",
                "eager_input_streaming": True,
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "path": {
                            "type": "string",
                            "description": "File to read, relative to the root folder or absolute inside it.",
                        },
                        "offset": {
                            "type": "integer",
                            "minimum": 0,
                            "description": "Line to begin with, 1 is the first; in a notebook, the cell.",
                        },
                        "limit": {
                            "type": "integer",
                            "minimum": 1,
                            "description": "How many lines, or cells, to read at most.",
                        },
                    },
                    "required": ["path"],
                    "additionalProperties": False,
                },
            },
            {
                "name": "bash",
                "description": "Run a command with bash in the root folder. Standard output and error come back together, the last 2,000 lines or 50 KB; longer output is kept in a file that is named. There is no standard input, so nothing can be asked or typed. Not for reading, searching or changing files (read, grep, find, ls, edit, write), nor for Python that needs the notebook's variables (python).",
                "eager_input_streaming": True,
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "command": {"type": "string", "description": "Command, or script of several lines, for bash."},
                        "timeout": {
                            "type": "number",
                            "exclusiveMinimum": 0,
                            "description": "Seconds after which it is killed with all that it started; none if left out.",
                        },
                    },
                    "required": ["command"],
                    "additionalProperties": False,
                },
            },
            {
                "name": "edit",
                "description": "Change parts of an existing text file. Each oldText must be in the file exactly once; all edits are looked for in the file as it is now and made together, or none. Keep oldText short, but unique. Not for new files or for rewriting most of a file (write), nor for a notebook that is open in Jupyter.",
                "eager_input_streaming": True,
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "path": {
                            "type": "string",
                            "description": "File to change, relative to the root folder or absolute inside it.",
                        },
                        "edits": {
                            "type": "array",
                            "minItems": 1,
                            "description": "Replacements. They must not overlap: make changes of the same lines one edit.",
                            "items": {
                                "type": "object",
                                "properties": {
                                    "oldText": {
                                        "type": "string",
                                        "description": "Text to replace, exactly as in the file, there only once.",
                                    },
                                    "newText": {
                                        "type": "string",
                                        "description": "Text to put in its place; may be empty.",
                                    },
                                },
                                "required": ["oldText", "newText"],
                                "additionalProperties": False,
                            },
                        },
                    },
                    "required": ["path", "edits"],
                    "additionalProperties": False,
                },
            },
            {
                "name": "write",
                "description": "Create a text file, or replace one whole; missing folders are made. Not for changing parts of a file (edit), nor for appending (bash or python).",
                "eager_input_streaming": True,
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "path": {
                            "type": "string",
                            "description": "File to write, relative to the root folder or absolute inside it.",
                        },
                        "content": {"type": "string", "description": "All of the file's text."},
                    },
                    "required": ["path", "content"],
                    "additionalProperties": False,
                },
            },
            {
                "name": "grep",
                "description": "Search in files for a regular expression, line by line; binary files and what .gitignore excludes are left out. Matches come as path:line: text, lines of context as path-line- text. Not for finding files by name (find) or for reading a file that you know (read).",
                "eager_input_streaming": True,
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "pattern": {"type": "string", "description": "Regular expression, or plain text with literal."},
                        "path": {
                            "type": "string",
                            "description": "Folder or file to search; the root folder if left out.",
                        },
                        "glob": {
                            "type": "string",
                            "description": "Only files that match, like '*.py' or 'src/**/*.ts'; with '!' in front all others.",
                        },
                        "ignoreCase": {
                            "type": "boolean",
                            "description": "Let upper and lower case match; false if left out.",
                        },
                        "literal": {
                            "type": "boolean",
                            "description": "Take the pattern as plain text; false if left out.",
                        },
                        "context": {
                            "type": "integer",
                            "minimum": 0,
                            "description": "Lines to show before and after each match; 0 if left out.",
                        },
                        "limit": {"type": "integer", "minimum": 1, "description": "Matches at most; 100 if left out."},
                    },
                    "required": ["pattern"],
                    "additionalProperties": False,
                },
            },
            {
                "name": "find",
                "description": "Find files and folders by a glob of their names; what .gitignore excludes is left out. Paths are relative to the root folder, folders end in '/'. Not for searching in files (grep) or for listing one folder (ls).",
                "eager_input_streaming": True,
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "pattern": {
                            "type": "string",
                            "description": "Glob: '*.csv' for names at any depth, 'src/**/*.py' for paths from the folder searched; ** spans folders, {a,b} are alternatives.",
                        },
                        "path": {"type": "string", "description": "Folder to search; the root folder if left out."},
                        "limit": {
                            "type": "integer",
                            "minimum": 1,
                            "description": "Results at most; 1,000 if left out.",
                        },
                    },
                    "required": ["pattern"],
                    "additionalProperties": False,
                },
            },
            {
                "name": "ls",
                "description": "List one folder, sorted, dotfiles too; folders end in '/', links show where they lead. Not for looking through a tree (find) or into files (read, grep).",
                "eager_input_streaming": True,
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": "Folder to list; the root folder if left out."},
                        "limit": {"type": "integer", "minimum": 1, "description": "Entries at most; 500 if left out."},
                    },
                    "additionalProperties": False,
                    "required": [],
                },
            },
            {
                "name": "python",
                "description": "Run Python code in the notebook's own namespace, like a cell: variables and imports stay, the value of a last expression comes back together with what was printed and plotted. Not for code that should outlive this kernel (bash), or for only looking at which variables there are (variables).",
                "eager_input_streaming": True,
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "code": {
                            "type": "string",
                            "description": "Python code; the value of a last expression is returned.",
                        }
                    },
                    "required": ["code"],
                    "additionalProperties": False,
                },
            },
            {
                "name": "variables",
                "description": "List the notebook's variables by type, shape, size and a short preview, or look at one more closely. Objects of unknown classes are only named, nothing of them is run. Not for computing anything or for attributes (python).",
                "eager_input_streaming": True,
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "name": {
                            "type": "string",
                            "description": "One variable to look at more closely; all are listed if left out.",
                        }
                    },
                    "additionalProperties": False,
                    "required": [],
                },
            },
        ]
    )
