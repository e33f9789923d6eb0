-- Ways to the other messages of a thread and of a sender. An index holds no key of any length, and From may be long.
CREATE INDEX inbound_messages_thread ON inbound_messages (thread, received_at);
CREATE INDEX inbound_messages_sender ON inbound_messages (
    lower(left(coalesce(substring(sender FROM '<([^<>]*)>$'), sender), 320)), received_at
);
