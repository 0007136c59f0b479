import Foundation

extension DataDirectory {
  /// Looks whether this user is the one to work here.
  /// - Parameter onlyReads: Nothing is made in the directory.
  /// - Throws: ``CommandFailure`` where the system keeps this user out, and for root in a directory
  ///   of somebody else, whose server could not open what root makes. It names whom to run as.
  func checkUser(onlyReads: Bool = false) throws(CommandFailure) {
    let needed = onlyReads ? R_OK : R_OK | W_OK
    // With a dot behind it what is no directory has another error.
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

  /// Whether this user may not even look what is here.
  var isClosed: Bool { access(path, X_OK) != 0 && errno == EACCES }

  private func advice(on file: String) -> String {
    guard let owner = FileOwner(of: file) else { return "Look at the modes of what it is in" }
    if owner.id == geteuid() { return "Its mode keeps its owner out: chmod u+rwX \(file)" }
    if file != path, let folder = FileOwner(of: path), folder.id != owner.id {
      return "It belongs to \(owner.name), and the directory to \(folder.name): "
        + "sudo chown --reference=\(path) \(file)"
    }
    return "It belongs to \(owner.name). " + owner.advice
  }
}

/// Whom a file belongs to; of one that cannot be looked at, the directory that hides it.
private struct FileOwner {
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

  var advice: String {
    "Run this as its owner: sudo \(id == 0 ? "" : "-u \(CurlCommand.word(name)) ")belfry …"
  }
}
