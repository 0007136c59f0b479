import Foundation
import NotificationHubs

/// The state that survives the process: the desired installation, and the hub's last answer.
///
/// A member that a later version adds must be optional, so that older files stay readable; another
/// meaning takes another ``version``.
struct DeviceRecord: Hashable, Codable, Sendable {
  static let version = 1

  /// A sign-out that the hub or the backend does not know yet.
  struct PendingSignOut: Hashable, Codable, Sendable {
    var userID: String
    /// Whether the installation is deleted as well.
    var deletesDevice: Bool
    /// Whether the installation is deleted or another user's, and only the sign-in is left to end.
    /// With a registrar for signed-in users only.
    var hasLeft: Bool?
  }

  /// The last answer to a registration.
  struct Answer: Hashable, Codable, Sendable {
    /// A digest of the installation that was answered, the address and the versions.
    var fingerprint: String
    var at: Date
    /// The reason why it was refused; `nil` if it was confirmed.
    var refusal: String?
  }

  var version = Self.version
  var installationID: String
  var desired = DesiredInstallation()
  var userID: String?
  /// Tags that belong to the user and leave with them.
  var userTags: Set<Tag> = []
  var isEnabled = true
  /// Whether the hub may have the installation: set before the first request, since its reply can
  /// be lost.
  var mayExist = false
  /// The users with whom the hub may have the installation: the last confirmed one, and those of
  /// requests since then.
  var registeredUsers: Set<String>?
  /// Sign-outs, the oldest first. They precede every other request.
  var signOuts: [PendingSignOut] = []
  /// `nil` while a request is under way too: if its reply is lost, nothing is known.
  var answer: Answer?
  /// The time for which the hub asked not to be called.
  var throttle: Wait?

  init(installationID: String) { self.installationID = installationID }
}

extension DeviceRecord {
  /// A change of the record, applied to what another process may have stored in the meantime.
  typealias Edit = @Sendable (inout DeviceRecord) -> Void

  /// Finds the device's id and record, or creates them.
  ///
  /// - Throws: ``StorageError``; nothing is created then: what cannot be read may well be there.
  static func open(
    in storage: any DeviceStorage, newID: () -> String
  ) throws(StorageError) -> (record: DeviceRecord, condition: PushInstallation.StorageCondition) {
    var id = try storage.load(.installationID).flatMap(validID)
    let isNewID = id == nil
    if isNewID {
      let new = newID()
      // Another process may have been faster.
      try storage.update(.installationID) { data in
        id = data.flatMap(validID) ?? new
        data = id.map { Data($0.utf8) }
      }
    }
    guard let id else { throw .failed("the installation's id could not be stored") }
    var condition = PushInstallation.StorageCondition.continued
    var damaged: Data?
    let record = try update(in: storage, orElse: DeviceRecord(installationID: id)) { found in
      switch found {
      case .nothing:
        condition = isNewID ? .first : .reinstalled
        var record = DeviceRecord(installationID: id)
        // The id outlives the app in the keychain, and the installation at the hub outlives both.
        record.mayExist = !isNewID
        return record
      case .unreadable(let data):
        (condition, damaged) = (.damaged, data)
        var record = DeviceRecord(installationID: id)
        record.mayExist = true
        return record
      case .record(var record):
        guard record.installationID != id else { return record }
        // From a backup of another device, which keeps its own installation.
        condition = .restored
        (record.installationID, record.answer, record.signOuts) = (id, nil, [])
        (record.registeredUsers, record.throttle) = (nil, nil)
        record.mayExist = !isNewID
        return record
      }
    }
    if let damaged { try? storage.save(damaged, as: .damagedRecord) }
    return (record, condition)
  }

  /// Applies edits to the stored record, or to `known` if it is gone or cannot be read.
  static func apply(
    _ edits: [Edit], to known: DeviceRecord, in storage: any DeviceStorage
  ) throws(StorageError) -> DeviceRecord {
    try update(in: storage, orElse: known) { found in
      var record = known
      if case .record(let stored) = found, stored.installationID == known.installationID {
        record = stored
      }
      for edit in edits { edit(&record) }
      return record
    }
  }

  /// The user who is signed in, for an extension.
  static func userID(in storage: any DeviceStorage) throws(StorageError) -> String? {
    let data = try storage.load(.record)
    return data.flatMap { try? JSONDecoder().decode(DeviceRecord.self, from: $0) }?.userID
  }

  private enum Found {
    case nothing
    /// Damaged, or of a newer version.
    case unreadable(Data)
    case record(DeviceRecord)
  }

  private static func update(
    in storage: any DeviceStorage, orElse known: DeviceRecord, _ change: (Found) -> DeviceRecord
  ) throws(StorageError) -> DeviceRecord {
    var result = known
    try storage.update(.record) { data in
      let found: Found
      if let data {
        let record = try? JSONDecoder().decode(DeviceRecord.self, from: data)
        found = record.flatMap { $0.version == version ? .record($0) : nil } ?? .unreadable(data)
      } else {
        found = .nothing
      }
      result = change(found)
      if case .record(result) = found { return }
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      data = try? encoder.encode(result)
    }
    return result
  }

  private static func validID(_ data: Data) -> String? {
    String(data: data, encoding: .utf8).flatMap { $0.isEmpty ? nil : $0 }
  }
}
