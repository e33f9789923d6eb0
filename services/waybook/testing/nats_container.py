"""A nats-server in a container, where an engine answers and the image is there. No image is ever pulled."""

import asyncio
import functools
import os
import socket
import sys
import time
from contextlib import suppress

import docker
import docker.errors
import msgspec
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from waybook.adapters.embedded.errors import ServerStartFailed, ServerUnreachable
from waybook.adapters.embedded.free_port import free_port
from waybook.adapters.embedded.monitoring import read_monitor
from waybook.adapters.embedded.server_version import check_server_version

DEFAULT_IMAGE = "nats:2.15"
_CONFIG = "/waybook.conf"


def image_name() -> str:
    """WAYBOOK_TEST_NATS_IMAGE, by default nats:2.15."""
    return os.environ.get("WAYBOOK_TEST_NATS_IMAGE", DEFAULT_IMAGE)


@functools.cache
def image_is_here(image: str) -> bool:
    """Whether a container engine answers and has the image."""
    if not _engine_listens():
        return False
    try:
        client = docker.from_env(timeout=5)
    except docker.errors.DockerException:
        return False
    try:
        client.images.get(image)
    except (docker.errors.DockerException, OSError):
        return False
    finally:
        client.close()
    return True


def _engine_listens() -> bool:
    """The client leaves its socket open when nobody listens, so that is found out before."""
    scheme, _, place = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").partition("://")
    if scheme != "unix":
        return True
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(place) == 0


class NatsContainer:
    """A nats-server whose container is kept over stop, kill and start, and with it its data and its address.

    It uses the host's network and listens on loopback where that reaches us (an engine on this Linux machine that does
    not run rootless); elsewhere its ports are published.
    """

    def __init__(self, image: str, *, sync_always: bool = True, max_store_bytes: int | None = None) -> None:
        self._image = image
        self._sync_always = sync_always
        self._max_store_bytes = max_store_bytes
        self._ports = (free_port(), free_port())
        self._container: DockerContainer | None = None
        self._host = "127.0.0.1"

    @property
    def url(self) -> str:
        return f"nats://{self._host}:{self._ports[0]}"

    @property
    def monitor_url(self) -> str:
        return f"http://{self._host}:{self._ports[1]}"

    async def start(self) -> None:
        await asyncio.to_thread(self._start)
        await self._until_ready()

    async def stop(self) -> None:
        await asyncio.to_thread(self._end, "SIGTERM")

    async def kill(self) -> None:
        await asyncio.to_thread(self._end, "SIGKILL")

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def pause(self) -> None:
        if self._container is not None:
            self._container.get_wrapped_container().kill("SIGSTOP")

    def resume(self) -> None:
        if self._container is not None:
            self._container.get_wrapped_container().kill("SIGCONT")

    async def remove(self) -> None:
        """Removes the container with its data."""
        if self._container is not None:
            await asyncio.to_thread(self._container.stop)
            self._container = None

    def _start(self) -> None:
        if self._container is not None:
            self._container.get_wrapped_container().start()
            return
        # Its reaper is an image of its own, which would be pulled.
        testcontainers_config.ryuk_disabled = True
        container = DockerContainer(self._image).with_command(["-c", _CONFIG])
        on_host = _host_network_reaches_us(container)
        if on_host:
            container = container.with_kwargs(network_mode="host")
        else:
            for port in self._ports:
                container = container.with_bind_ports(port, port)
        container = container.with_copy_into_container(self._render("127.0.0.1" if on_host else "0.0.0.0"), _CONFIG)
        self._container = container
        container.start()
        if not on_host:
            self._host = container.get_container_host_ip()

    def _end(self, signal: str) -> None:
        if self._container is None:
            return
        running = self._container.get_wrapped_container()
        with suppress(docker.errors.APIError):  # it has ended already
            running.kill(signal)
        running.wait(timeout=20)

    async def _until_ready(self) -> None:
        end = time.monotonic() + 30
        while True:
            try:
                if (await read_monitor(self.monitor_url, "healthz")).get("status") == "ok":
                    break
            except ServerUnreachable as error:
                if time.monotonic() >= end:
                    raise ServerStartFailed(f"{self._image} does not answer; it says: {self._said()}") from error
            await asyncio.sleep(0.02)
        version = str((await read_monitor(self.monitor_url, "varz")).get("version", ""))
        check_server_version(version, where=f"the nats-server in the image {self._image}")

    def _said(self) -> str:
        return b"".join(self._container.get_logs()).decode(errors="replace")[-2_000:] if self._container else ""

    def _render(self, host: str) -> bytes:
        jetstream: dict[str, object] = {"store_dir": "/data"}
        if self._sync_always:
            jetstream["sync_interval"] = "always"
        if self._max_store_bytes is not None:
            jetstream["max_file_store"] = self._max_store_bytes
        port, monitor_port = self._ports
        return msgspec.json.encode(
            {"host": host, "port": port, "http": f"{host}:{monitor_port}", "jetstream": jetstream}
        )


def _host_network_reaches_us(container: DockerContainer) -> bool:
    client = container.get_docker_client().client
    local = client.api.base_url.startswith("http+docker://")
    rootless = any("rootless" in option for option in client.info().get("SecurityOptions") or [])
    return sys.platform == "linux" and local and not rootless
