"""The fixtures that every test with a real server stands on."""

import asyncpg
import nats

from waybook.testing.servers import NatsUnderTest, ServerUnderTest


async def test_the_nats_server_keeps_its_messages_over_a_kill_and_answers_at_the_same_address(
    own_nats: NatsUnderTest,
) -> None:
    url = own_nats.url
    connection = await nats.connect(url)
    await connection.jetstream().add_stream(name="KEPT", subjects=["kept.>"])
    await connection.jetstream().publish("kept.one", b"1")
    await connection.close()
    await own_nats.kill()
    await own_nats.start()
    assert own_nats.url == url
    connection = await nats.connect(url)
    assert (await connection.jetstream().stream_info("KEPT")).state.messages == 1
    await connection.close()


async def test_a_clean_nats_server_has_no_streams(clean_nats: NatsUnderTest) -> None:
    connection = await nats.connect(clean_nats.url)
    assert (await connection.jetstream().account_info()).streams == 0
    await connection.jetstream().add_stream(name="LEFT", subjects=["left.>"])
    await connection.close()


async def test_a_clean_nats_server_has_no_streams_of_the_test_before(clean_nats: NatsUnderTest) -> None:
    connection = await nats.connect(clean_nats.url)
    assert (await connection.jetstream().account_info()).streams == 0
    await connection.close()


async def test_each_test_has_an_empty_database(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("SELECT count(*) FROM pg_stat_user_tables") == 0
    await connection.execute("CREATE TABLE left_over (id int)")
    await connection.close()


async def test_each_test_has_an_empty_database_after_another_left_a_table(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("SELECT count(*) FROM pg_stat_user_tables") == 0
    await connection.close()


async def test_postgres_keeps_its_rows_over_a_stop_and_a_kill(own_postgres: ServerUnderTest) -> None:
    connection = await asyncpg.connect(own_postgres.url)
    await connection.execute("CREATE TABLE kept AS SELECT 1 AS id")
    await connection.close()
    await own_postgres.restart()
    await own_postgres.kill()
    await own_postgres.start()
    connection = await asyncpg.connect(own_postgres.url)
    assert await connection.fetchval("SELECT id FROM kept") == 1
    await connection.close()
