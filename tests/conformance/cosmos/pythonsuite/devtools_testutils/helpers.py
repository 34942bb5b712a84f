def is_live():
    return getattr(is_live, "_cache", False)
