"""Codes of images and zipapps, said before a plugin starts or in its place: `code: cause`, `-> remedy`, `eg …`."""

PACKAGE_CODES = """
install-noexec: `install DIR`: the volume is mounted noexec, so the plugin could not start from there.
-> Mount a volume that allows execution, or use an image volume.
eg volumes: [{name: plugins, image: {reference: IMAGE}}]
install-no-space: `install DIR`: the volume has less room than the plugin needs.
-> Raise the sizeLimit of the emptyDir.
eg emptyDir: {sizeLimit: 100Mi}
install-failed: `install DIR`: the directory cannot be written to; the error tells why.
-> Give a directory on a writable volume with room.
eg volumeMounts: [{name: plugins, mountPath: /plugins}]
tree-incomplete: The image's executable does not find the files that belong to it; the error names the first.
-> Copy bin and lib together, best with `install DIR`. During an update it may pass by itself.
eg args: [install, /plugins]
mount-path: The image is mounted at a path that the loader would take apart: it holds a colon, semicolon, $ or newline.
-> Mount the plugin's volume elsewhere.
eg volumeMounts: [{name: plugins, mountPath: /plugins}]
self-unknown: The image's executable cannot find out where it lies: there is no /proc, and its path was not given.
-> Mount /proc, or start it by its absolute path.
eg "command": "/plugins/bin/secretreader-plugin"
wrong-architecture: The files beside the image's executable are for another processor than itself.
-> Install the image of this machine's architecture, bin and lib together.
eg args: [install, /plugins]
not-executable: The interpreter of the image may not be executed: the volume is noexec, or a copy lost its modes.
-> Copy it with `install DIR`, onto a volume that allows execution.
eg args: [install, /plugins]
no-memory: The container has no memory left to start the plugin.
-> Raise the container's memory limit: a plugin needs some 20 MiB, with an SDK up to 60 MiB.
eg resources: {limits: {memory: 256Mi}}
start-failed: The kernel did not start the image's interpreter; the error tells its reason.
-> Look at the pod's seccomp or AppArmor profile and its limits of processes and memory.
eg kubectl get pod -o yaml
python-too-old: A zipapp was started by a Python older than 3.11.
-> Install a newer Python beside it, and start the file with that, or use the image form.
eg python3.13 secretreader-plugin.pyz --version
wrong-platform: A zipapp that holds machine code is for another Python version or platform; its name says which.
-> Take the archive for this machine, or the image form.
eg aks-plugin-cp311-linux_x86_64.pyz
unpack-failed: A cloud zipapp cannot unpack its SDK: no directory is named, or it cannot be written or executed from.
-> Set EXECCRED_UNPACK_DIR to a writable directory of your own, or use the image form.
eg EXECCRED_UNPACK_DIR=/var/lib/ci/execcred
unpack-refused: The directory that a cloud zipapp would unpack its SDK into could have been filled by another user.
-> Set EXECCRED_UNPACK_DIR to a directory that is yours alone, mode 0700.
eg install -d -m=700 "$HOME/.cache/execcred"
"""
