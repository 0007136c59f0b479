import Foundation

/// The directory that a development stack works in: the one named, or one of its own that goes with
/// it.
struct Workspace: Sendable {
  let data: DataDirectory
  /// Of a directory of its own, from its first moment: it tells whether somebody still works there.
  let claim: DirectoryClaim?

  /// - Parameter path: `nil` makes a directory of its own, and removes those that others have left
  ///   there without an orderly end: they hold keys.
  init(_ path: String?) throws {
    if let path {
      data = try .make(at: path)
      claim = nil
    } else {
      let folder = FileManager.default.temporaryDirectory
      Self.removeAbandoned(in: folder.path)
      let name = Self.prefix + UUID().uuidString.lowercased()
      data = try .make(at: folder.appending(path: name).path)
      claim = try data.claim()
    }
  }

  func remove() {
    if claim != nil { try? FileManager.default.removeItem(atPath: data.path) }
  }

  // MARK: What others have left

  private static let prefix = "belfry-"

  /// Removes the directories here that have a name as ``init(_:)`` gives, belong to this user, and
  /// hold a lock that nobody holds.
  static func removeAbandoned(in folder: String) {
    let files = FileManager.default
    for name in (try? files.contentsOfDirectory(atPath: folder)) ?? [] where isOwn(name) {
      let path = folder + "/" + name
      let lock = path + "/lock"
      // Neither follows a symbolic link.
      guard let directory = try? files.attributesOfItem(atPath: path),
        directory[.type] as? FileAttributeType == .typeDirectory,
        (directory[.ownerAccountID] as? NSNumber)?.uint32Value == geteuid(),
        let file = try? files.attributesOfItem(atPath: lock),
        file[.type] as? FileAttributeType == .typeRegular,
        // Between its making and its claim there is a moment.
        let made = file[.modificationDate] as? Date, made.timeIntervalSinceNow < -5,
        let claim = try? DirectoryClaim(file: lock)
      else { continue }
      withExtendedLifetime(claim) { try? files.removeItem(atPath: path) }
    }
  }

  private static func isOwn(_ name: String) -> Bool {
    let id = name.dropFirst(prefix.count)
    return name.hasPrefix(prefix) && id == id.lowercased() && UUID(uuidString: String(id)) != nil
  }
}
