import Cryptography
import Foundation
import HTTPServer
import NotificationHubs
import SecurePush

/// Registers devices at the hub on behalf of their users, so that no device holds a key of the hub
/// and none can claim another user's notifications.
struct DeviceService: Sendable {
  /// The tag of installations that get their payloads sealed.
  static let sealedTag: Tag = "securepush:sealed"

  let hub: NotificationHubClient
  let store: BackendStore
  let now: @Sendable () -> Date

  // MARK: Registrations, as in the tutorial

  /// `POST /api/register?handle=H`: an id for ``putRegistration(_:)``. What is registered for the
  /// handle already goes: a phone that changes hands must not ring for its last user.
  func makeRegistrationID(_ call: Call) async throws -> HTTPResponse {
    if let item = call.request.target.queryItem("handle") {
      guard let handle = item.value, !handle.isEmpty, handle.utf8.count <= 4096 else {
        throw APIFailure(.badRequest, "'handle' must be the device's push handle")
      }
      for registration in try await hub.registrations(channel: .handle(handle)).all() {
        guard let id = registration.registrationID else { continue }
        // An id such as ".." of an older hub is left to that hub: no request can name it.
        guard id.isPathSegment else { continue }
        try await ignoringAbsence { try await hub.delete(registration: id) }
        try await store.removeDevice(id, audit: nil)
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
    guard let word = document["platform"]?.scalarText, let platform = Self.platform(word) else {
      throw APIFailure(
        .badRequest,
        "'Platform' must be one of \(PushPlatform.allCases.map(\.rawValue).joined(separator: ", "))"
      )
    }
    guard case .string(let handle)? = document["handle"], !handle.isEmpty else {
      throw APIFailure(.badRequest, "'Handle' must be the device's push handle")
    }
    let channel = PushChannel.handle(platform == .apns ? handle.uppercased() : handle)
    try await checkOwner(of: id, channel: channel, call)
    let registration = Registration(
      platform: platform, channel: channel, tags: try tags(document["tags"], of: call.user),
      registrationID: id)
    _ = try await hub.createOrUpdate(registration)
    try await store.put(
      StoredDevice(id: id, isInstallation: false, platform: platform.rawValue, sealingKey: nil),
      of: call.user, channel: Self.digest(channel),
      audit: call.audit("register", id, at: now()), now: now())
    return HTTPResponse(.ok, body: .bytes([]))
  }

  /// `DELETE /api/register/{id}`.
  func deleteRegistration(_ call: Call) async throws -> HTTPResponse {
    try await remove(call, "registration") { id in try await hub.delete(registration: id) }
  }

  // MARK: Installations

  /// `PUT /api/installations/{id}` with the JSON of an installation (spec `rest-api.md` 4.1). User and
  /// user tag are ours to say.
  func putInstallation(_ call: Call) async throws -> HTTPResponse {
    let id = try call.parameter("id")
    var installation: Installation
    do {
      installation = try Installation.decodeRequest(call.request.body, id: id)
    } catch {
      throw APIFailure(.badRequest, error.message)
    }
    try await checkOwner(of: id, channel: installation.pushChannel, call)
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
    try await hub.createOrReplace(installation)
    try await store.put(
      StoredDevice(
        id: id, isInstallation: true, platform: installation.platform.rawValue,
        sealingKey: installation.sealingKey?.description),
      of: call.user, channel: Self.digest(installation.pushChannel),
      audit: call.audit("register", id, at: now()), now: now())
    return HTTPResponse(.ok, body: .bytes([]))
  }

  /// `DELETE /api/installations/{id}`: signing out removes the device.
  func deleteInstallation(_ call: Call) async throws -> HTTPResponse {
    try await remove(call, "installation") { id in try await hub.delete(installation: id) }
  }

  // MARK: Whose is what

  private func remove(
    _ call: Call, _ what: String, _ delete: (String) async throws -> Void
  ) async throws -> HTTPResponse {
    let id = try call.parameter("id")
    guard try await store.owner(ofDevice: id)?.user == call.user.text else {
      throw APIFailure.notFound(what)
    }
    try await ignoringAbsence { try await delete(id) }
    try await store.removeDevice(id, audit: call.audit("unregister", id, at: now()))
    return HTTPResponse(.ok, body: .bytes([]))
  }

  /// A device belongs to who registered it first. It changes hands only with its push channel: who
  /// knows that has the device, and has signed in on it.
  private func checkOwner(of id: String, channel: PushChannel, _ call: Call) async throws {
    guard let owner = try await store.owner(ofDevice: id), owner.user != call.user.text else {
      return
    }
    guard ConstantTime.equal(owner.channel, Self.digest(channel)) else {
      throw APIFailure(.conflict, "this id belongs to another device; ask for one of your own")
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

  /// The caller's tags with the user's own.
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

  /// The platform's own word, or that of its send format (`apple`, `windows`, `fcm`).
  private static func platform(_ word: String) -> PushPlatform? {
    PushPlatform(installationWord: word) ?? PushPlatform(sendFormat: word)
      ?? (word.lowercased() == "fcm" ? .fcmv1 : nil)
  }

  private static func digest(_ channel: PushChannel) -> [UInt8] {
    Digest.sha256(Array(channel.handle.utf8))
  }
}

/// What is gone already need not be removed.
func ignoringAbsence(_ body: () async throws -> Void) async throws {
  do { try await body() } catch let error as NotificationHubError where error.kind == .notFound {}
}
