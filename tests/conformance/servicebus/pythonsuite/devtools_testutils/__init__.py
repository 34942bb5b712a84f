"""What the tests of azure-servicebus import from the repository's tools, which are not
published: here against a namespace that is there, without recordings and without Azure
Resource Manager."""

import base64
import functools
import inspect
import json
import os
import time
import uuid

from azure.core.credentials import AccessToken


def _token():
    part = lambda claims: base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    ends = int(time.time()) + 3600
    return AccessToken(f"{part({'alg': 'none', 'typ': 'JWT'})}.{part({'exp': ends, 'oid': 'tests'})}.x", ends)


class _Credential:
    def get_token(self, *scopes, **kwargs):
        return _token()

    def close(self):
        pass


class _AsyncCredential:
    async def get_token(self, *scopes, **kwargs):
        return _token()

    async def close(self):
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass


def get_credential(**kwargs):
    return _AsyncCredential() if kwargs.get("is_async") else _Credential()


class AzureRecordedTestCase:
    is_live = True

    def get_resource_name(self, name):
        return name + uuid.uuid4().hex[:8]

    create_random_name = get_resource_name

    @staticmethod
    def await_prepared_test(test):
        return test

    def get_credential(self, _type=None, **kwargs):
        return get_credential(**kwargs)


class AzureMgmtRecordedTestCase(AzureRecordedTestCase):
    pass


def recorded_by_proxy(test=None, **_):
    return test if test else lambda test: test


def is_live():
    return True


def set_custom_default_matcher(**_):
    pass


def nothing(*_, **__):
    return lambda test: test


RandomNameResourceGroupPreparer = CachedResourceGroupPreparer = ResourceGroupPreparer = nothing


def injecting(make):
    """A decorator that calls a test with the keyword arguments that make returns, as far
    as it takes them."""

    def decorate(test):
        taken = inspect.signature(test).parameters.values()
        everything = hasattr(test, "injected") or any(p.kind == inspect.Parameter.VAR_KEYWORD for p in taken)

        def fitting(made, kwargs):
            names = {p.name for p in taken}
            return {k: v for k, v in {**made, **kwargs}.items() if everything or k in names}

        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def wrapped(*args, **kwargs):
                made, clean = make(kwargs)
                try:
                    return await test(*args, **fitting(made, kwargs))
                finally:
                    clean()

        else:

            @functools.wraps(test)
            def wrapped(*args, **kwargs):
                made, clean = make(kwargs)
                try:
                    return test(*args, **fitting(made, kwargs))
                finally:
                    clean()

        wrapped.injected = True
        # pytest must not take what is injected for fixtures
        own = ("self", "test_class", "uamqp_transport", "socket_transport")
        wrapped.__signature__ = inspect.Signature([p for p in taken if p.name in own])
        return wrapped

    return decorate


def PowerShellPreparer(_directory, **_kwargs):
    def prepare(**_):
        parts = dict(p.split("=", 1) for p in os.environ["SERVICEBUS_CONNECTION_STRING"].split(";") if p)
        return injecting(
            lambda _: (
                {
                    "servicebus_connection_str": os.environ["SERVICEBUS_CONNECTION_STRING"],
                    "servicebus_fully_qualified_namespace": parts["Endpoint"].removeprefix("sb://").strip("/"),
                    "servicebus_sas_policy": parts["SharedAccessKeyName"],
                    "servicebus_sas_key": parts["SharedAccessKey"],
                },
                lambda: None,
            )
        )

    return prepare()
