import Foundation
import PushDevice
import Synchronization

/// The storage of a virtual phone: a directory, or memory for a phone that is thrown away.
final class PhoneStorage: DeviceStorage {
  /// The id of the emulator's device that the phone is.
  static let device = StoredItem("emulated-device", isSecret: false)

  private struct Contents {
    var items: [StoredItem: Data] = [:]
    var isLocked: Bool
  }

  private let files: FileStorage?
  private let contents: Mutex<Contents>

  /// - Throws: ``StorageError``; ``CommandFailure`` if the state is of another installation.
  init(_ circumstances: PhoneCircumstances) throws {
    files = circumstances.state.map { FileStorage(directory: $0) }
    contents = Mutex(Contents(isLocked: false))
    if circumstances.isReinstalled { try save(nil, as: .record) }
    // Secrets are in no backup.
    if let backup = circumstances.backup {
      try save(try FileStorage(directory: backup).load(.record), as: .record)
    }
    if let id = circumstances.installationID,
      let stored = try load(.installationID).map({ String(decoding: $0, as: UTF8.self) }),
      stored != id
    {
      throw CommandFailure("--id: the state is of the installation '\(stored)'")
    }
    contents.withLock { $0.isLocked = circumstances.lockedFor != nil }
  }

  func unlock() { contents.withLock { $0.isLocked = false } }

  func load(_ item: StoredItem) throws(StorageError) -> Data? {
    let (isLocked, data) = contents.withLock { ($0.isLocked, $0.items[item]) }
    if isLocked { throw .locked }
    return if let files { try files.load(item) } else { data }
  }

  func update(
    _ item: StoredItem, _ change: (inout Data?) -> Void
  ) throws(StorageError) {
    let isLocked = contents.withLock { contents in
      if !contents.isLocked, files == nil { change(&contents.items[item]) }
      return contents.isLocked
    }
    if isLocked { throw .locked }
    try files?.update(item, change)
  }
}
