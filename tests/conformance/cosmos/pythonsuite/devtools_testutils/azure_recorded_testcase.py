def get_credential(**_):
    raise RuntimeError("the emulator is reached with a key: set no ACCOUNT_HOST")
