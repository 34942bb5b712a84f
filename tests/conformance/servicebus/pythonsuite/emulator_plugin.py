import os

import certifi
import pytest

certifi.where = lambda: os.environ["SERVICEBUS_CERTIFICATE"]
os.environ["REQUESTS_CA_BUNDLE"] = os.environ["SERVICEBUS_CERTIFICATE"]


@pytest.fixture(scope="session")
def test_proxy():
    pass
