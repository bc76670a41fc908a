select; -- inbound messages
