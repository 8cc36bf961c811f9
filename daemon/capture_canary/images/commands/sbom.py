"""`capture-canary images sbom`: what is in an image of ours, as CycloneDX."""

import argparse
import sys
from pathlib import Path

from capture_canary.images import engine, local, sbom
from capture_canary.report.words import plain


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("image", metavar="IMAGE", help="a local image, or a cell of the matrix")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write it (the output)")


def run(args: argparse.Namespace) -> int:
    """Write it; return 1 where that cannot be."""
    client = engine.connect()
    try:
        (name,) = local.named(client, [args.image])
        image = local.inspect(client, name)
        text = sbom.document(image, sbom.packages(client, image)) + "\n"
        if args.out:
            args.out.write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(text)
    except (local.ImageError, OSError) as error:
        sys.stderr.write(f"capture-canary images sbom: {plain(args.image)}: {error}\n")
        return 1
    finally:
        client.close()
    return 0
