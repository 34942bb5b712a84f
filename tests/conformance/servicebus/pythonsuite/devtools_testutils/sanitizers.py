def __getattr__(name):
    return lambda *_, **__: None
