"""Private names and message texts of other libraries: the one place where this project relies on them.

Each has a reason, and the version in which it was found to work. `tests/compat` fails when one of them changes, and
fails too when a private name is used outside this package. The tested minor versions are the upper bounds in
`setup.cfg`: to raise one, install the new version and run these tests first.

    of_lightning     loops, checkpoint callback, command line, strategies
    of_torch         gradients' norms, moving of buffers, Muon, schedules
    sharded_folders  torch's sharded checkpoints, read without running code from them
    of_transformers  Auto classes, attention, blocks
    messages         what other libraries say, where only the text tells one case from another

Any part of the library and the data modules may import from here; nothing here imports the rest of the library.
Modules are imported by name, so that a loss does not load Lightning.
"""
