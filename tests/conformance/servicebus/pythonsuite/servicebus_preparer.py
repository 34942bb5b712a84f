"""The entities that the tests of azure-servicebus ask for, made through the admin API
instead of Azure Resource Manager."""

import functools
import os
import types
import uuid

from azure.servicebus.management import ServiceBusAdministrationClient
from devtools_testutils import injecting, nothing

SERVICEBUS_ENDPOINT_SUFFIX = ""
_connection = os.environ["SERVICEBUS_CONNECTION_STRING"]
_parts = dict(p.split("=", 1) for p in _connection.split(";") if p)
_host = _parts["Endpoint"].removeprefix("sb://").strip("/")
_cached = {}


def admin():
    return ServiceBusAdministrationClient.from_connection_string(_connection)


def _preparer(parameter, create, use_cache=False, name_prefix="", **properties):
    def make(kwargs):
        key = (parameter, name_prefix, tuple(sorted(properties.items())), getattr(kwargs.get("servicebus_topic"), "name", None))
        if use_cache and key in _cached:
            return {parameter: _cached[key]}, lambda: None
        name = (name_prefix or "e") + uuid.uuid4().hex[:12]
        with admin() as a:
            create(a, name, kwargs, properties)
        _cached[key] = types.SimpleNamespace(name=name, id=name)
        return {parameter: _cached[key]}, lambda: None

    return injecting(make)


def _settings(properties, names):
    return {n: properties[n] for n in names if n in properties}


def _queue(a, name, _, p):
    a.create_queue(
        name,
        **_settings(p, ("requires_duplicate_detection", "dead_lettering_on_message_expiration", "requires_session", "enable_partitioning")),
        lock_duration=p.get("lock_duration", "PT30S"),
    )


def _topic(a, name, _, p):
    a.create_topic(name)


def _subscription(a, name, kwargs, p):
    a.create_subscription(
        kwargs["servicebus_topic"].name, name, requires_session=p.get("requires_session", False), lock_duration=p.get("lock_duration", "PT60S")
    )


def ServiceBusQueuePreparer(*prefix, **p):
    return _preparer("servicebus_queue", _queue, **p)


def ServiceBusTopicPreparer(**p):
    return _preparer("servicebus_topic", _topic, **p)


def ServiceBusSubscriptionPreparer(**p):
    return _preparer("servicebus_subscription", _subscription, **p)


def ServiceBusNamespacePreparer(**_):
    rule = types.SimpleNamespace(name=_parts["SharedAccessKeyName"])
    return injecting(
        lambda _: (
            {
                "servicebus_namespace": types.SimpleNamespace(name=_host),
                "servicebus_namespace_connection_string": _connection,
                "servicebus_namespace_key_name": rule.name,
                "servicebus_namespace_primary_key": _parts["SharedAccessKey"],
                "servicebus_namespace_secondary_key": _parts["SharedAccessKey"],
            },
            lambda: None,
        )
    )


def _rule(parameter, **p):
    # The keys of an emulator are those of the namespace: a rule has the rights of the key of its name.
    rights = [str(r).split(".")[-1].lower() for r in p.get("access_rights", [])]
    key = {("listen",): "ListenOnly", ("send",): "SendOnly"}.get(tuple(rights), _parts["SharedAccessKeyName"])
    made = f"{_parts['Endpoint']}"
    return injecting(
        lambda _: (
            {
                parameter: types.SimpleNamespace(name=key),
                parameter + "_connection_string": f"Endpoint={made};SharedAccessKeyName={key};SharedAccessKey={_parts['SharedAccessKey']}",
            },
            lambda: None,
        )
    )


def ServiceBusNamespaceAuthorizationRulePreparer(**p):
    return _rule("servicebus_authorization_rule", **p)


def ServiceBusQueueAuthorizationRulePreparer(**p):
    return _rule("servicebus_queue_authorization_rule", **p)


ServiceBusResourceGroupPreparer = CachedServiceBusResourceGroupPreparer = nothing
CachedServiceBusNamespacePreparer = ServiceBusNamespacePreparer
CachedServiceBusQueuePreparer = functools.partial(ServiceBusQueuePreparer, use_cache=True)
CachedServiceBusTopicPreparer = functools.partial(ServiceBusTopicPreparer, use_cache=True)
CachedServiceBusSubscriptionPreparer = functools.partial(ServiceBusSubscriptionPreparer, use_cache=True)
