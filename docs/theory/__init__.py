"""The linear theory of Dec-SSL: tables and figure of docs/dec_ssl.md."""
