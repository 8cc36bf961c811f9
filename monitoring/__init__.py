"""Rules and dashboards as code: `python -m monitoring` writes rules/, grafana/ and what the chart takes of them."""
