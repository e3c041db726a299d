"""Public images.

https://cloud.google.com/compute/docs/images/os-details
"""

from __future__ import annotations

import zlib
from typing import ClassVar

from typing_extensions import override

from . import catalog
from .call import Answer, Call, Handler
from .errors import not_found
from .links import link
from .resource import Resource


class Images(Resource):
    """``images``: by exact name and by family. All of them boot the lab's own guest (docs/lab-fidelity.md)."""

    collection = "images"
    noun = "image"
    kind = "image"
    served: ClassVar = {"global": "images"}
    verbs = ("get", "list")

    @override
    def handlers(self) -> dict[str, Handler]:
        return {"getFromFamily": self.get_from_family}

    def _image(self, image: catalog.Image) -> Answer:
        return {
            "kind": "compute#image",
            "id": str(10**17 + zlib.crc32(image.name.encode())),
            "name": image.name,
            "family": image.family,
            "architecture": image.architecture,
            "status": "READY",
            "sourceType": "RAW",
            "diskSizeGb": str(catalog.IMAGE_GB),
            "archiveSizeBytes": "1073741824",
            "labelFingerprint": self.cloud.fingerprint({}),
            "creationTimestamp": self.cloud.began,
            "guestOsFeatures": [{"type": kind} for kind in ("GVNIC", "UEFI_COMPATIBLE", "VIRTIO_SCSI_MULTIQUEUE")],
            "selfLink": link(image.key),
        }

    @override
    def get(self, call: Call) -> Answer:
        image = catalog.image(call.params["project"], call.params["image"])
        if image is None:
            raise not_found(f"projects/{call.params['project']}/global/images/{call.params['image']}")
        return self._image(image)

    @override
    def list_all(self, call: Call) -> Answer:
        project = call.params["project"]
        return self.listing(f"projects/{project}/global/images", [self._image(i) for i in catalog.images(project)])

    def get_from_family(self, call: Call) -> Answer:
        """The newest image of a family."""
        image = catalog.family(call.params["project"], call.params["family"])
        if image is None:
            raise not_found(f"projects/{call.params['project']}/global/images/family/{call.params['family']}")
        return self._image(image)
