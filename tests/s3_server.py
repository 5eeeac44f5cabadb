"""An S3 server on loopback, and what reaches it from the environment."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

BUCKET = "nights"


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """A server with one empty bucket; the environment variables that name it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    try:
        environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        client(environment).create_bucket(Bucket=BUCKET)
        yield environment
    finally:
        server.stop()


def client(environment: dict[str, str]) -> Any:
    """What reads and writes the bucket without any of our code."""
    return boto3.client(
        "s3",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region_name=environment["AWS_DEFAULT_REGION"],
    )


def names(environment: dict[str, str], prefix: str = "") -> list[str]:
    """The keys in the bucket."""
    pages = client(environment).get_paginator("list_objects_v2")
    found = pages.paginate(Bucket=BUCKET, Prefix=prefix)
    return [entry["Key"] for page in found for entry in page.get("Contents", [])]
