package import Foundation
package import HubCore
package import NotificationHubs

package struct InstallationRow: NumberedRow {
  package let number: Int64
  package let hub: Hub.ID
  package var installation: Installation
  /// Registrations as they were last written with it; `nil` makes the next write one that writes
  /// everything.
  var written: [RegistrationDraft]?

  func isOver(at now: Date) -> Bool { installation.expirationTime.map { $0 <= now } ?? false }

  /// Whether a write says what the last one said.
  func isRepeated(by other: Installation, _ drafts: [RegistrationDraft]) -> Bool {
    guard installation == other, let written, written == drafts else { return false }
    // Tags are equal whatever their letter case.
    return zip(written, drafts).allSatisfy { $0.tags.map(\.rawValue) == $1.tags.map(\.rawValue) }
      && installation.tags.map(\.rawValue) == other.tags.map(\.rawValue)
  }
}

package struct RegistrationRow: NumberedRow {
  package let number: RegistrationID
  package let hub: Hub.ID
  /// 0 for one that a client has written.
  package let installation: Int64
  /// Its id, unless that follows from the number.
  package var publicID: String?
  package var draft: RegistrationDraft { didSet { derive() } }
  /// A client has written it last; otherwise it follows from its installation.
  package private(set) var isClients: Bool
  package var etag: Int64 = 1
  package var confirmedAt: Date
  package var environment = PushEnvironment.own
  /// The last commit that has written it, and the last that has written or confirmed its handle.
  package var written: Int64
  package var confirmed: Int64
  /// The commit since which another one has its handle, if ever.
  package var sharedSince: Int64?
  /// In the form of ``TargetPage/handles``; this and what follows is derived from the draft.
  private(set) var handle: String
  private(set) var device: PushDevice
  private(set) var tags: [String] = []
  private(set) var tagSet: Set<Tag> = []

  init(
    number: RegistrationID, hub: Hub.ID, installation: Int64, publicID: String? = nil,
    draft: RegistrationDraft, at: Date, commit: Int64
  ) {
    self.number = number
    self.hub = hub
    self.installation = installation
    self.publicID = publicID
    self.draft = draft
    isClients = installation == 0
    confirmedAt = at.stored
    (written, confirmed) = (commit, commit)
    handle = draft.channel.stored
    device = PushDevice(hub: hub, platform: draft.platform, handle: draft.channel.handle)
    derive()
  }

  /// Replaces all that a write says.
  mutating func rewrite(
    _ draft: RegistrationDraft, byClient isClients: Bool, at: Date, commit: Int64
  ) {
    self.draft = draft
    self.isClients = isClients
    etag += 1
    confirmedAt = at.stored
    (written, confirmed) = (commit, commit)
  }

  private mutating func derive() {
    handle = draft.channel.stored
    device = PushDevice(hub: hub, platform: draft.platform, handle: draft.channel.handle)
    tags = draft.tags.map(\.folded)
    tagSet = Set(draft.tags)
  }

  var isNative: Bool { draft.kind == .native }

  func id(_ coding: RegistrationIDCoding) -> String { publicID ?? coding.id(of: number, hub: hub) }

  func stored(_ coding: RegistrationIDCoding) -> StoredRegistration {
    StoredRegistration(
      number: number, id: id(coding), draft: draft, etag: etag, isDerived: installation != 0)
  }

  func isOver(at now: Date) -> Bool { draft.expiresAt.map { $0 <= now } ?? false }
}

/// A device at its push service, as a handle tells: of a browser its endpoint, at FCM the
/// installation id that tokens begin with.
struct PushDevice: Hashable {
  let hub: Hub.ID
  let platform: PushPlatform
  let identity: String
  /// It is an installation of FCM.
  let isInstallation: Bool

  init(hub: Hub.ID, platform: PushPlatform, handle: String) {
    let installation = platform == .fcmv1 ? handle.utf8.firebaseInstallationID : nil
    self.hub = hub
    self.platform = platform
    identity = installation.map { String(decoding: $0, as: UTF8.self) } ?? handle
    isInstallation = installation != nil
  }
}

/// A registration that was removed, or given another handle, because a push service reported it.
package struct RemovedRow: NumberedRow {
  package let row: RegistrationRow
  package var removedAt: Date
  package let outcome: NotificationOutcome
  /// `nil` when the registration was deleted.
  package var newHandle: String?
  package var number: Int64 { row.number }
  var hour: Int64 { removedAt.milliseconds / 3_600_000 }
}

package struct FeedbackRow: NumberedRow {
  package let hub: Hub.ID
  package let feedback: HandleFeedback
  package var number: Int64 { feedback.number }
  var hour: Int64 { feedback.at.milliseconds / 3_600_000 }
}

extension SimulatedDatabase.State {
  /// The slot of what clients call so.
  func slot(of id: String) -> Int64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in id.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return slot(ofNumber: Int64(bitPattern: hash >> 8))
  }

  /// The slot of a row of this number.
  func slot(ofNumber number: Int64) -> Int64 { number & Int64(slots - 1) }

  /// A number with its slot in the lowest bits; it rises with what it is made of.
  func number(_ sequential: Int64, slot: Int64) -> Int64 { sequential << 8 | slot }

  func registration(_ number: RegistrationID, hub: Hub.ID) -> RegistrationRow? {
    registrations[number: number].flatMap { $0.hub == hub ? $0 : nil }
  }

  func installation(_ id: String, hub: Hub.ID) -> InstallationRow? {
    installationNumbers[HubKey(hub: hub, id: id)].flatMap { installations[number: $0] }
  }

  /// In the order of their numbers.
  func registrations(of installations: Set<Int64>) -> [RegistrationRow] {
    registrations.filter { $0.installation != 0 && installations.contains($0.installation) }
  }

  /// Marks the native registrations of a device that has more than one.
  mutating func markShared(_ device: PushDevice) {
    let holders = registrations.filter { $0.isNative && $0.device == device }
    guard holders.count > 1 else { return }
    for row in holders where row.sharedSince == nil {
      registrations.change(row.number) { $0.sharedSince = commit }
    }
  }

  /// Writes a registration that its app has told: what was removed of its device does not come back.
  mutating func put(_ row: RegistrationRow) {
    removed.removeAll { $0.row.device == row.device }
    registrations.put(row)
  }

  mutating func remove(_ row: RegistrationRow) {
    registrations[number: row.number] = nil
    forgetWrite(of: row.installation)
  }

  /// Makes the installation's next write one that writes everything.
  mutating func forgetWrite(of installation: Int64) {
    installations.change(installation) { $0.written = nil }
  }

  /// Deletes installations with their registrations, and what of those could be brought back.
  mutating func deleteInstallations(_ numbers: [Int64]) {
    let all = Set(numbers)
    registrations.removeAll { all.contains($0.installation) }
    removed.removeAll { all.contains($0.row.installation) }
    for number in numbers {
      guard let row = installations[number: number] else { continue }
      installationNumbers[HubKey(hub: row.hub, id: row.installation.installationID)] = nil
      installations[number: number] = nil
    }
  }
}
