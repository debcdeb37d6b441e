"""Run → pages in a browser (Dash). `server.dashboard` serves them; nothing else here is needed from outside."""
