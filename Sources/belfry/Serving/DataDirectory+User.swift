import Foundation

extension DataDirectory {
  /// Checks that this user is the right one for the directory.
  /// - Parameter onlyReads: Whether nothing will be created in the directory.
  /// - Throws: ``CommandFailure`` if the system denies access, or for root in a directory of
  ///   another user, whose server could not open files created by root. It names the user to run
  ///   as.
  func checkUser(onlyReads: Bool = false) throws(CommandFailure) {
    let needed = onlyReads ? R_OK : R_OK | W_OK
    // With a final dot, a path that is not a directory gives another error.
    for (name, mode) in [("/.", needed | X_OK), ("/belfry.sqlite", needed), ("/database", R_OK)]
    where access(path + name, mode) != 0 && errno == EACCES {
      let word = access(path + name, mode & ~W_OK) == 0 ? "written" : "read"
      let file = name == "/." ? path : path + name
      throw CommandFailure(
        "\(file) cannot be \(word) by this user. \(advice(on: file))", exitCode: .usage)
    }
    if !onlyReads, geteuid() == 0, let owner = FileOwner(of: path), owner.id != 0 {
      throw CommandFailure(
        "\(path) belongs to \(owner.name), whose server could not open what root makes there. "
          + owner.advice, exitCode: .usage)
    }
  }

  /// Makes root continue as the directory's owner, permanently: links and addresses that the owner
  /// has placed there then give no access beyond the owner's. Files that only root can read are
  /// read before. A directory still to be created belongs to the owner of its parent.
  /// - Throws: ``CommandFailure`` if root cannot change users, as in a container.
  func becomeOwner() throws(CommandFailure) {
    guard geteuid() == 0 else { return }
    var place = URL(fileURLWithPath: path).standardizedFileURL
    var status = stat()
    while stat(place.path, &status) != 0 && place.path != "/" { place.deleteLastPathComponent() }
    let id = status.st_uid
    guard id != 0 else { return }
    let user = getpwuid(id)
    let group = user?.pointee.pw_gid ?? status.st_gid
    // Groups first: afterwards the process may not change them.
    let hasGroups =
      if let name = user?.pointee.pw_name { initgroups(name, numericCast(group)) == 0 } else {
        setgroups(0, nil) == 0
      }
    guard hasGroups, setgid(group) == 0, setuid(id) == 0 else {
      throw CommandFailure(
        "root may not work as the owner of \(place.path) here: \(String(cString: strerror(errno))). "
          + (FileOwner(of: place.path)?.advice ?? ""), exitCode: .usage)
    }
  }

  /// Whether this user cannot even list the directory.
  var isClosed: Bool { access(path, X_OK) != 0 && errno == EACCES }

  private func advice(on file: String) -> String {
    guard let owner = FileOwner(of: file) else { return "Check the modes of its parents" }
    if owner.id == geteuid() { return "Its mode keeps its owner out: chmod u+rwX \(file)" }
    if file != path, let folder = FileOwner(of: path), folder.id != owner.id {
      return "It belongs to \(owner.name), and the directory to \(folder.name): "
        + "sudo chown --reference=\(path) \(file)"
    }
    return "It belongs to \(owner.name). " + owner.advice
  }
}

/// The owner of a file; if it cannot be inspected, that of the directory that hides it.
struct FileOwner {
  let id: uid_t
  let name: String

  init?(of path: String) {
    var place = URL(fileURLWithPath: path).standardizedFileURL
    var status = stat()
    while stat(place.path, &status) != 0 {
      guard errno == EACCES, place.path != "/" else { return nil }
      place.deleteLastPathComponent()
    }
    id = status.st_uid
    let attributes = try? FileManager.default.attributesOfItem(atPath: place.path)
    name = attributes?[.ownerAccountName] as? String ?? "#\(id)"
  }

  /// The reason why the contents of a file or directory may come from a user other than this one
  /// and root; `nil` if they cannot, or there are none.
  static func distrust(_ path: String) -> String? {
    var status = stat()
    // A link counts too, since its creator decides where it leads.
    for follows in [false, true] {
      guard (follows ? stat(path, &status) : lstat(path, &status)) == 0 else { return nil }
      guard status.st_uid == geteuid() || status.st_uid == 0 else {
        return "\(path) belongs to another user"
      }
    }
    // In a directory with the sticky bit users cannot rename the files of others.
    if status.st_mode & S_IFMT == S_IFDIR, status.st_mode & S_ISVTX != 0 { return nil }
    let isOfGroup =
      status.st_mode & S_IWGRP != 0 && status.st_gid != getegid() && status.st_gid != 0
    guard isOfGroup || status.st_mode & S_IWOTH != 0 else { return nil }
    return "other users may write to \(path)"
  }

  fileprivate var advice: String {
    "Run this as its owner: sudo \(id == 0 ? "" : "-u \(CurlCommand.word(name)) ")belfry …"
  }
}
