package proc

import (
	"os"

	"golang.org/x/sys/windows"
)

// PrepareDir makes dir a private directory: real, and open to this user and
// SYSTEM alone. A link or a file in its place is refused with ReasonBlocked.
func PrepareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return failed(err, "the directory %s cannot be made", dir)
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return failed(err, "the directory %s cannot be examined", dir)
	}
	if !fi.IsDir() || fi.Mode()&(os.ModeSymlink|os.ModeIrregular) != 0 {
		return blocked("%s is a link or a file, and a private directory must be a real one: name its target with --data-dir, or remove it", dir)
	}
	user, err := currentSID()
	if err != nil {
		return failed(err, "the current user cannot be found")
	}
	sd, err := windows.SecurityDescriptorFromString("D:P(A;OICI;FA;;;" + user + ")(A;OICI;FA;;;SY)")
	if err != nil {
		return failed(err, "the directory %s cannot be made private", dir)
	}
	dacl, _, err := sd.DACL()
	if err == nil {
		err = windows.SetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT,
			windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, dacl, nil)
	}
	if err != nil {
		return blocked("the directory %s cannot be made private, it may belong to another user: choose another with --data-dir: %w", dir, err)
	}
	return nil
}

func currentSID() (string, error) {
	u, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return "", err
	}
	return u.User.Sid.String(), nil
}
