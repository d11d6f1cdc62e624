package doctor

import (
	"fmt"
	"os"
	"syscall"
)

// kinds are the file systems that statfs(2) and the kernel's magic.h number.
var kinds = map[uint32]struct{ name, risk string }{
	0xEF53:     {"ext4", ""},
	0x58465342: {"xfs", ""},
	0x9123683E: {"btrfs", ""},
	0x2FC12FC1: {"zfs", ""},
	0xF2F52010: {"f2fs", ""},
	0x01021994: {"tmpfs", "it is memory, and gone after a restart of the machine"},
	0x858458F6: {"ramfs", "it is memory, and gone after a restart of the machine"},
	0x794C7630: {"overlay", "it is gone with its container, unless the directory is a volume"},
	0x6969:     {"nfs", "locks and syncs over a network may not hold what they promise"},
	0xFF534D42: {"cifs", "locks and syncs over a network may not hold what they promise"},
	0xFE534D42: {"smb2", "locks and syncs over a network may not hold what they promise"},
	0x01021997: {"9p", "syncs may not reach the disk of the host"},
	0x65735546: {"fuse", "whether a sync reaches a disk depends on the program behind it"},
}

func diskOf(dir string) (d disk, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return d, fmt.Errorf("statfs %s: %w", dir, err)
	}
	k, ok := kinds[uint32(s.Type)]
	if !ok {
		k.name = fmt.Sprintf("kind %#x", uint32(s.Type))
	}
	block := uint64(s.Bsize)
	return disk{kind: k.name, risk: k.risk, free: s.Bavail * block, total: s.Blocks * block, names: s.Ffree, allNames: s.Files}, nil
}

// syncData makes what was written durable, as the store's log does.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
