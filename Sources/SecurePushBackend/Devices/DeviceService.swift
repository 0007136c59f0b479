import Authentication
import Cryptography
import Foundation
import HTTPServer
import NotificationHubs
import SecurePush
import Synchronization
import Wire

/// Registers devices at the hub on behalf of their users, so that no device holds a hub key and
/// none can claim another user's notifications.
struct DeviceService: Sendable {
  /// The tag of installations whose payloads are sealed.
  static let sealedTag: Tag = "securepush:sealed"

  let hub: NotificationHubClient
  let store: BackendStore
  let devicesPerUser: Int
  let locks: DeviceLocks
  let now: @Sendable () -> Date

  // MARK: Registrations, as in the tutorial

  /// `POST /api/register?handle=H`: an id for ``putRegistration(_:)``. The caller's existing
  /// registrations of the handle are deleted. Those of other users stay, because a handle does not
  /// prove possession of the device.
  func makeRegistrationID(_ call: Call) async throws -> HTTPResponse {
    if let item = call.request.target.queryItem("handle") {
      guard let handle = item.value, !handle.isEmpty, handle.utf8.count <= 4096 else {
        throw APIFailure(.badRequest, "'handle' must be the device's push handle")
      }
      for registration in try await hub.registrations(channel: .handle(handle)).all() {
        // An older hub may have an id such as "..", which no request can address.
        guard let id = registration.registrationID, id.isPathSegment else { continue }
        _ = try await removeOwn(id, call, isInstallation: false) {
          try await hub.delete(registration: id)
        }
      }
    }
    return BackendAPI.json(.ok, .string(try await hub.createRegistrationID()))
  }

  /// `PUT /api/register/{id}` with `{"Platform","Handle","Tags"}`.
  func putRegistration(_ call: Call) async throws -> HTTPResponse {
    let id = try call.parameter("id")
    guard let document = try call.document() else {
      throw APIFailure(.badRequest, "the body must hold Platform and Handle")
    }
    guard let word = document["platform"]?.scalarText, let platform = PushPlatform(word: word)
    else {
      throw APIFailure(
        .badRequest,
        "'Platform' must be one of \(PushPlatform.allCases.map(\.rawValue).joined(separator: ", "))"
      )
    }
    guard case .string(let handle)? = document["handle"], !handle.isEmpty else {
      throw APIFailure(.badRequest, "'Handle' must be the device's push handle")
    }
    let channel = PushChannel.handle(platform == .apns ? handle.uppercased() : handle)
    let registration = Registration(
      platform: platform, channel: channel, tags: try tags(document["tags"], of: call.user),
      registrationID: id)
    let device = StoredDevice(
      id: id, isInstallation: false, platform: platform.rawValue, sealingKey: nil)
    try await write(device, channel, call) {
      _ = try await hub.createOrUpdate(registration)
    } atHub: {
      try await hub.registration(id).tags.contains(call.user.tag)
    }
    return HTTPResponse(.ok, body: .bytes([]))
  }

  /// `DELETE /api/register/{id}`.
  func deleteRegistration(_ call: Call) async throws -> HTTPResponse {
    try await remove(call, isInstallation: false) { id in try await hub.delete(registration: id) }
  }

  // MARK: Installations

  /// `PUT /api/installations/{id}` with the JSON of an installation (docs/protocol/rest.md, section
  /// 4.1). The backend sets the user and the user tag.
  func putInstallation(_ call: Call) async throws -> HTTPResponse {
    let id = try call.parameter("id")
    var installation: Installation
    do {
      installation = try Installation.decodeRequest(call.request.body, id: id)
    } catch {
      throw APIFailure(.badRequest, error.message)
    }
    installation.tags = try own(installation.tags, of: call.user)
    for name in installation.templates.keys {
      try Self.refuseOthers(installation.templates[name]?.tags ?? [], than: call.user)
    }
    for tile in installation.secondaryTiles.values {
      try Self.refuseOthers(
        tile.tags + tile.templates.values.flatMap(\.tags), than: call.user)
    }
    installation.userID = call.user.identifier
    if installation.sealingKey != nil { installation.tags.append(Self.sealedTag) }
    let device = StoredDevice(
      id: id, isInstallation: true, platform: installation.platform.rawValue,
      sealingKey: installation.sealingKey?.description)
    let wanted = installation
    try await write(device, wanted.pushChannel, call) {
      try await hub.createOrReplace(wanted)
    } atHub: {
      let known = try await hub.installation(id)
      return known.userID == call.user.identifier
        || (known.userID == nil && known.pushChannel == wanted.pushChannel)
    }
    return HTTPResponse(.ok, body: .bytes([]))
  }

  /// `DELETE /api/installations/{id}`: removes the device on sign-out.
  func deleteInstallation(_ call: Call) async throws -> HTTPResponse {
    try await remove(call, isInstallation: true) { id in try await hub.delete(installation: id) }
  }

  // MARK: Whose is what

  private func remove(
    _ call: Call, isInstallation: Bool, _ delete: (String) async throws -> Void
  ) async throws -> HTTPResponse {
    let id = try call.parameter("id")
    guard try await removeOwn(id, call, isInstallation: isInstallation, { try await delete(id) })
    else { throw APIFailure.notFound(isInstallation ? "installation" : "registration") }
    return HTTPResponse(.ok, body: .bytes([]))
  }

  /// - Returns: Whether the device was the caller's.
  private func removeOwn(
    _ id: String, _ call: Call, isInstallation: Bool, _ delete: () async throws -> Void
  ) async throws -> Bool {
    try await locks.holding(id) {
      guard let owner = try await store.owner(ofDevice: id), owner.isOwn(of: call.user),
        owner.isInstallation == isInstallation
      else { return false }
      try await ignoringAbsence(delete)
      try await store.removeDevice(
        id, of: call.user, audit: call.audit("unregister", id, at: now()))
      return true
    }
  }

  /// Claims a device's id for the caller, then writes the device at the hub. Claiming first ensures
  /// that of two users who want the same id at the same time only one reaches the hub.
  ///
  /// - Parameter atHub: Called if the store does not know the id; returns whether the hub's device
  ///   with the id is the caller's. It throws if the hub has none.
  private func write(
    _ device: StoredDevice, _ channel: PushChannel, _ call: Call, _ put: () async throws -> Void,
    atHub isOwn: () async throws -> Bool
  ) async throws {
    let refusal = APIFailure(
      .conflict, "this id belongs to another device; ask for one of your own")
    try await locks.holding(device.id) {
      if try await store.owner(ofDevice: device.id) == nil {
        do {
          guard try await isOwn() else { throw refusal }
        } catch let error as NotificationHubError where [.notFound, .gone].contains(error.kind) {}
      }
      let now = now()
      let claim = try await store.claim(
        device, of: call.user, channel: Self.digest(channel), limit: devicesPerUser,
        audit: call.audit("register", device.id, at: now), now: now)
      guard claim != .refused else { throw refusal }
      guard claim != .full else {
        throw APIFailure(
          .forbidden,
          "you have \(devicesPerUser) devices registered already; remove one of them first")
      }
      do { try await put() } catch {
        if claim == .new { try await store.removeDevice(device.id, of: call.user, audit: nil) }
        throw error
      }
    }
  }

  // MARK: What an older version has registered

  /// Gives the devices of an older version the tags of their owners' name spaces. Those with an
  /// ambiguous owner lose theirs, so that they do not receive another user's pushes.
  func renewOldTags() async throws {
    while true {
      let devices = try await store.devicesWithOldTag()
      for (device, owner) in devices {
        let user = UserName(key: owner)
        let tags = user?.kind == .old ? [] : [user?.tag].compactMap(\.self)
        func renewed(_ old: [Tag]) -> [Tag] {
          old.filter { !$0.folded.hasPrefix(UserName.tagPrefix) } + tags
        }
        // Older versions accepted ids such as "..", which no request can address.
        let isNameable = device.id.isPathSegment
        try await locks.holding(device.id) {
          guard try await store.owner(ofDevice: device.id)?.user == owner else { return }
          try await ignoringAbsence {
            guard isNameable else { return }
            if device.isInstallation {
              var installation = try await hub.installation(device.id)
              installation.tags = renewed(installation.tags)
              installation.userID = user?.kind == .old ? nil : user?.identifier
              try await hub.createOrReplace(installation)
            } else {
              var registration = try await hub.registration(device.id)
              registration.tags = renewed(registration.tags)
              _ = try await hub.createOrUpdate(registration)
            }
          }
          try await store.noteNewTag(device: device.id)
        }
      }
      if devices.isEmpty { return }
    }
  }

  private func tags(_ value: JSONValue?, of user: UserName) throws -> [Tag] {
    var tags: [Tag] = []
    switch value {
    case nil: break
    case .array(let items)?:
      for item in items {
        guard case .string(let text) = item else {
          throw APIFailure(.badRequest, "'Tags' must be an array of texts")
        }
        tags.append(Tag(rawValue: text))
      }
    default: throw APIFailure(.badRequest, "'Tags' must be an array of texts")
    }
    do { tags = try Tag.validated(list: tags) } catch {
      throw APIFailure(.badRequest, error.message)
    }
    return try own(tags, of: user)
  }

  /// The caller's tags and the user's own tag.
  private func own(_ tags: [Tag], of user: UserName) throws -> [Tag] {
    try Self.refuseOthers(tags, than: user)
    return tags.filter { $0 != user.tag && $0 != Self.sealedTag } + [user.tag]
  }

  private static func refuseOthers(_ tags: [Tag], than user: UserName) throws {
    guard tags.allSatisfy({ $0 == user.tag || !$0.folded.hasPrefix(UserName.tagPrefix) }) else {
      throw APIFailure(
        .forbidden, "a tag '\(UserName.tagPrefix)…' is the backend's to give: leave it out")
    }
  }

  private static func digest(_ channel: PushChannel) -> [UInt8] {
    Digest.sha256(Array(channel.handle.utf8))
  }
}

extension PushPlatform {
  /// The platform by its own name or by that of its send format (`apple`, `windows`, `fcm`).
  init?(word: String) {
    let known =
      PushPlatform(installationWord: word) ?? PushPlatform(sendFormat: word)
      ?? (word.lowercased() == "fcm" ? .fcmv1 : nil)
    guard let known else { return nil }
    self = known
  }
}

/// Ignores that the object to delete does not exist.
func ignoringAbsence(_ body: () async throws -> Void) async throws {
  do { try await body() } catch let error as NotificationHubError where error.kind == .notFound {}
}

/// Serializes changes of each device, so that its owner cannot change between the ownership check
/// and the call of the hub.
final class DeviceLocks: Sendable {
  /// The waiting changes by device, in order. A device without a change in progress has no entry.
  private let queues = Mutex<[String: [CheckedContinuation<Void, Never>]]>([:])

  func holding<Result>(_ id: String, _ body: () async throws -> Result) async throws -> Result {
    // Some hubs treat ids that differ only in letter case as one.
    let key = id.lowercased()
    await withCheckedContinuation { continuation in
      let isFree = queues.withLock { queues in
        if queues[key] == nil {
          queues[key] = []
          return true
        }
        queues[key]?.append(continuation)
        return false
      }
      if isFree { continuation.resume() }
    }
    defer {
      let next = queues.withLock { queues in
        guard queues[key]?.isEmpty == false else {
          queues[key] = nil
          return nil as CheckedContinuation<Void, Never>?
        }
        return queues[key]?.removeFirst()
      }
      next?.resume()
    }
    return try await body()
  }
}
