import Authentication
import Cryptography
import Foundation
import HTTPServer
import NotificationHubs
import SecurePush
import Wire

/// Secure notifications: stores the payload, announces it, and returns it only to its owner.
struct NotificationService: Sendable {
  /// The payload of a notification without a body of its own, from the tutorial.
  static let standardPayload = "Secure confirmation."
  private static let listLimit = 100

  let hub: NotificationHubClient
  let store: BackendStore
  let configuration: BackendConfiguration
  let now: @Sendable () -> Date
  let people: People
  let report: @Sendable (BackendEvent) -> Void

  /// `POST /api/notifications`. The reply contains the number of devices that the user has
  /// registered here, and those that another user has since taken over.
  func create(_ call: Call) async throws -> HTTPResponse {
    if call.request.target.queryItem("pns") != nil || call.request.target.queryItem("to_tag") != nil
    {
      return try await sendPlainly(call)
    }
    let order = try SendOrder(call, configuration: configuration, people: people)
    let now = now()
    let message = StoredMessage(
      id: Base64URL.encode(try SecureRandom.bytes(16)), owner: order.owner, createdAt: now,
      expiresAt: now.addingTimeInterval(order.lifetime), isReadOnce: order.isReadOnce, readAt: nil)
    // Stored before the announcement, since a device may request it immediately.
    guard
      try await store.add(
        message, payload: order.payload, limit: configuration.messagesPerUser, now: now)
    else {
      throw APIFailure(
        .tooManyRequests,
        "\(configuration.messagesPerUser) messages wait for '\(order.owner)' already")
    }
    let devices = try await store.devices(of: order.owner)
    let announcement = Announcement(
      hub: hub, devices: devices, report: report,
      sealsPayloads: configuration.sealsPayloads && !order.isReadOnce)
    do {
      try await announcement.send(
        message.id, payload: order.payload, to: order.owner, alert: order.alert)
    } catch {
      try await store.withdraw(message.id)
      throw error
    }
    try await store.note(call.audit("create", message.id, at: now))
    var reply: [JSONValue.Member] = [
      .init("Id", .string(message.id)), .init("Devices", .number(String(devices.count))),
    ]
    let detached = try await store.detachedDevices(of: order.owner)
    if !detached.isEmpty {
      let items = detached.map { device in
        JSONValue.object([
          .init("Id", .string(device.id)), .init("At", .string(WireDate.seconds(device.at))),
        ])
      }
      reply.append(.init("Detached", .array(items)))
    }
    return BackendAPI.json(.ok, .object(reply))
  }

  /// `POST /api/notifications?pns=apns&to_tag=alice` with a JSON string, as in the tutorial "Notify
  /// users": an ordinary push to one platform, readable by the hub and the push service.
  private func sendPlainly(_ call: Call) async throws -> HTTPResponse {
    guard let word = call.request.target.queryItem("pns")?.value,
      let platform = word.lowercased() == "gcm" ? .fcmv1 : PushPlatform(word: word)
    else { throw APIFailure(.badRequest, "'pns' must be apns, fcm or wns") }
    guard let name = call.request.target.queryItem("to_tag")?.value else {
      throw APIFailure(.badRequest, "'to_tag' must be a user's name")
    }
    guard case .string(let text)? = try? JSONValue.parse(call.request.body), !text.isEmpty else {
      throw APIFailure(.badRequest, #"the body must be the message as a JSON string: "Hello""#)
    }
    let user = try people.recipient(name, of: call)
    let message = "From \(call.user.text): \(text)"
    let notification: PushNotification
    switch platform {
    case .apns:
      let aps = JSONValue.object([.init("alert", .string(message))])
      notification = .apple(JSONValue.object([.init("aps", aps)]).jsonText)
    case .fcmv1:
      let data = JSONValue.object([.init("data", .object([.init("message", .string(message))]))])
      notification = .native(.fcmv1, JSONValue.object([.init("message", data)]).jsonText)
    case .wns:
      notification = .native(
        .wns,
        #"<toast><visual><binding template="ToastText01"><text id="1">"# + message.xmlEscaped
          + "</text></binding></visual></toast>", headers: ["X-WNS-Type": "wns/toast"])
    default: throw APIFailure(.badRequest, "'pns' must be apns, fcm or wns")
    }
    try await hub.send(notification, to: .tag(user.tag))
    try await store.note(call.audit("send", user.key, at: now()))
    return HTTPResponse(.ok, body: .bytes([]))
  }

  /// `GET /api/notifications/{id}` by its owner. `Read` says whether it had been read before.
  func read(_ call: Call) async throws -> HTTPResponse {
    let id = try call.parameter("id")
    let reading = try await store.read(
      id, by: call.user, audit: call.audit("read", String(id.prefix(64)), at: now()), now: now())
    switch reading {
    case .none: throw APIFailure.notFound("notification")
    case .found(_, payload: nil):
      throw APIFailure(.gone, "this notification was to be read once, and has been")
    case .found(let message, let payload?):
      return BackendAPI.json(
        .ok,
        .object([
          .init("Id", .string(message.id)), .init("Payload", .string(payload)),
          .init("Read", .bool(message.readAt != nil)),
        ]))
    }
  }

  /// `GET /api/notifications`: the caller's own messages, newest first, without payloads.
  func list(_ call: Call) async throws -> HTTPResponse {
    let messages = try await store.messages(
      of: call.user, limit: Self.listLimit, audit: call.audit("list", "", at: now()), now: now())
    return BackendAPI.json(
      .ok,
      .array(
        messages.map { message in
          .object([
            .init("Id", .string(message.id)), .init("Read", .bool(message.readAt != nil)),
            .init("CreatedAt", .string(WireDate.seconds(message.createdAt))),
            .init("ExpiresAt", .string(WireDate.seconds(message.expiresAt))),
          ])
        }))
  }

  /// `DELETE /api/notifications/{id}`.
  func delete(_ call: Call) async throws -> HTTPResponse {
    let id = try call.parameter("id")
    let audit = call.audit("delete", String(id.prefix(64)), at: now())
    guard try await store.delete(id, by: call.user, audit: audit) else {
      throw APIFailure.notFound("notification")
    }
    return HTTPResponse(.noContent)
  }
}

/// The body of `POST /api/notifications`; member names may have any letter case.
///
/// | Member | Default |
/// |---|---|
/// | `payload`: text | "Secure confirmation." |
/// | `to`: a user, as `name:alice` or `subject:…` where both sign in; others than oneself only for operators | oneself |
/// | `readOnce`: the payload goes with its first reading, and is never sealed into the push | false |
/// | `expiresIn`: seconds | the backend's setting |
/// | `alert`: a text that devices show at once, or true for a general one | the backend's setting |
private struct SendOrder {
  let owner: UserName
  let payload: String
  let isReadOnce: Bool
  let lifetime: TimeInterval
  let alert: String?

  init(_ call: Call, configuration: BackendConfiguration, people: People) throws {
    let document = try call.document() ?? .object([])
    switch document["payload"] {
    case nil: payload = NotificationService.standardPayload
    case .string(let text)?: payload = text
    default: throw APIFailure(.badRequest, "'payload' must be a text")
    }
    guard payload.utf8.count <= configuration.payloadLimit else {
      throw APIFailure(
        .contentTooLarge,
        "'payload' has \(payload.utf8.count) bytes; at most \(configuration.payloadLimit) are kept")
    }
    switch document["to"] {
    case nil: owner = call.user
    case .string(let name)?: owner = try people.recipient(name, of: call)
    default: throw APIFailure(.badRequest, "'to' must be a user's name")
    }
    switch document["readOnce"] {
    case nil: isReadOnce = false
    case .bool(let flag)?: isReadOnce = flag
    default: throw APIFailure(.badRequest, "'readOnce' must be true or false")
    }
    switch document["expiresIn"] {
    case nil: lifetime = configuration.lifetime
    case .number(let digits)?:
      guard let seconds = Double(digits), (1...configuration.longestLifetime).contains(seconds)
      else {
        throw APIFailure(
          .badRequest, "'expiresIn' must be 1 to \(Int(configuration.longestLifetime)) seconds")
      }
      lifetime = seconds
    default: throw APIFailure(.badRequest, "'expiresIn' must be a number of seconds")
    }
    alert = try Self.alert(document["alert"], configuration)
  }

  private static func alert(
    _ value: JSONValue?, _ configuration: BackendConfiguration
  ) throws -> String? {
    switch value {
    case nil: return configuration.alert
    case .bool(let flag)?: return flag ? Announcement.generalAlert : nil
    case .string(let text)?:
      guard (1...256).contains(text.utf8.count) else {
        throw APIFailure(.badRequest, "'alert' must have 1 to 256 bytes")
      }
      return text
    default: throw APIFailure(.badRequest, "'alert' must be a text, or true or false")
    }
  }
}

/// Announces a message to a user's devices: those with a key get the sealed payload, the others
/// only its id. It goes to every platform; platforms without a credential at the hub are skipped.
struct Announcement: Sendable {
  static let generalAlert = SecureMessage.genericAlert
  /// The tutorial's platforms; others are included only if the user has such a device.
  private static let standardPlatforms: Set<PushPlatform> = [.apns, .fcmv1, .wns]
  /// The maximum number of concurrent sends to single devices.
  private static let parallel = 8

  let hub: NotificationHubClient
  let devices: [StoredDevice]
  let report: @Sendable (BackendEvent) -> Void
  let sealsPayloads: Bool

  /// - Throws: ``APIFailure`` if the hub could not be reached for any platform.
  func send(_ id: String, payload: String, to user: UserName, alert: String?) async throws {
    let sealed = sealedDevices
    async let reached = sendSealed(id, payload: payload, to: sealed)
    var audience = TagExpression.tag(user.tag)
    if !sealed.isEmpty { audience = audience && !.tag(DeviceService.sealedTag) }
    let known = Set(devices.compactMap { PushPlatform(rawValue: $0.platform) })
    let message = SecureMessage(id: id)
    let presentation = alert.map(SecureMessage.Presentation.alert) ?? .background
    var failures: [NotificationHubError] = []
    var taken = 0
    for platform in PushPlatform.allCases
    where Self.standardPlatforms.contains(platform) || known.contains(platform) {
      guard let notification = message.notification(for: platform, as: presentation) else {
        continue
      }
      do {
        try await hub.send(notification, to: audience)
        taken += 1
      } catch let error as NotificationHubError {
        failures.append(error)
        report(.platformSkipped(platform, reason: error.description))
      }
    }
    taken += await reached
    guard taken == 0, let failure = failures.last(where: Self.isHubTrouble) else { return }
    throw APIFailure(hub: failure)
  }

  private static func isHubTrouble(_ error: NotificationHubError) -> Bool {
    error.kind != .badRequest
  }

  /// The installations with a usable public key.
  private var sealedDevices: [(SealingRecipient, PushPlatform)] {
    guard sealsPayloads else { return [] }
    return devices.compactMap { device in
      guard device.isInstallation, let platform = PushPlatform(rawValue: device.platform),
        let key = device.sealingKey.flatMap({ SealingPublicKey($0) })
      else { return nil }
      return (SealingRecipient(installationID: device.id, publicKey: key), platform)
    }
  }

  /// - Returns: The number of sends that the hub accepted.
  private func sendSealed(
    _ id: String, payload: String, to devices: [(SealingRecipient, PushPlatform)]
  ) async -> Int {
    await withTaskGroup(of: Bool.self) { group in
      var rest = devices.makeIterator()
      var taken = 0
      func addNext() {
        guard let (recipient, platform) = rest.next() else { return }
        group.addTask { await sendSealed(id, payload: payload, to: recipient, platform) }
      }
      for _ in 0..<Self.parallel { addNext() }
      for await isTaken in group {
        if isTaken { taken += 1 }
        addNext()
      }
      return taken
    }
  }

  private func sendSealed(
    _ id: String, payload: String, to recipient: SealingRecipient, _ platform: PushPlatform
  ) async -> Bool {
    do {
      let message = SecureMessage(
        id: id, sealed: try SecurePush.seal(Data(payload.utf8), id: id, for: recipient))
      let presentation = SecureMessage.Presentation.alert(Self.generalAlert)
      // If it is too large for the platform, the device fetches it by its id.
      guard
        let notification = message.fitting(platform, as: presentation)
          .notification(for: platform, as: presentation)
      else { return false }
      try await hub.send(notification, to: .installation(recipient.installationID))
      return true
    } catch {
      report(.sealingFailed(reason: "\(error)"))
      return false
    }
  }
}
