"""The probe: a package inside the server's processes (``site/``), and what sparkdiag's side must know of it."""
