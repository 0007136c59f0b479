import Foundation
import HubCore
import SQLDatabase

/// A migration of a database to a newer version when it was opened.
package struct StoreUpgrade: Hashable, Sendable {
  /// Schema versions.
  package let from: Int
  package let to: Int
  /// The path of the copy made before the migration, for example `belfry.sqlite.before-2`; `nil`
  /// where none was wanted.
  package let copy: String?

  /// Keeps a copy of a database that is about to be migrated.
  ///
  /// - Returns: `nil` when there is nothing to migrate.
  /// - Throws: ``StoreError`` when there is no room for it; nothing has been changed then.
  static func prepare(
    _ connection: SQLiteConnection, path: String, options: SQLiteHubStore.Options
  ) throws -> StoreUpgrade? {
    let (from, to) = (try connection.schemaVersion(), options.steps.count)
    guard from > 0, from < to else { return nil }
    guard options.keepsUpgradeCopy else { return StoreUpgrade(from: from, to: to, copy: nil) }
    let copy = copyPath(of: path, before: to)
    // Left by an interrupted upgrade: the database is between two versions now.
    if let kept = try? StoreFile(path: copy), kept.schema < from {
      return StoreUpgrade(from: from, to: to, copy: copy)
    }
    let size = try connection.size()
    // One file's length for the copy, another for data that the migration rewrites.
    let needed = size * 2
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    if let room = options.availableBytes ?? DiskSpace.available(at: folder), room < needed {
      throw StoreError.cannotOpen(
        "to bring it from schema version \(from) to \(to) takes \(needed.megabytes) of free disk, half of it "
          + "for a copy of what there is, and \(room.megabytes) are free; nothing was changed. Make room; or "
          + "make a backup elsewhere and start once with --upgrade-copy off")
    }
    let draft = copy + ".part"
    unlink(draft)
    try connection.writeCopy(to: draft)
    guard rename(draft, copy) == 0 else {
      throw StoreError.cannotOpen("\(copy) cannot be made: \(String(cString: strerror(errno)))")
    }
    return StoreUpgrade(from: from, to: to, copy: copy)
  }

  /// Removes the copies of earlier upgrades, now that this one is complete.
  func removeOlderCopies() {
    guard let copy else { return }
    let kept = URL(fileURLWithPath: copy)
    let folder = kept.deletingLastPathComponent()
    let stem = kept.lastPathComponent.dropLast("\(to)".count)
    for name in (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    where name.hasPrefix(stem) && name != kept.lastPathComponent {
      guard let version = Int(name.dropFirst(stem.count)), version < to else { continue }
      try? FileManager.default.removeItem(at: folder.appending(path: name))
    }
  }

  private static func copyPath(of path: String, before version: Int) -> String {
    path + ".before-\(version)"
  }
}

extension Int64 {
  /// `120 MB`, comparable with the output of other tools.
  package var megabytes: String {
    let megabytes = Double(self) / 1_000_000
    return megabytes < 10
      ? "\((megabytes * 10).rounded(.up) / 10) MB" : "\(Int(megabytes.rounded(.up))) MB"
  }
}
