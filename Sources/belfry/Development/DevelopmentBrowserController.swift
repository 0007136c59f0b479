import Foundation
import HTTPServer
import HubCore
import HubServer
import NotificationHubs
import Wire

/// The functions of the browser page for a hub under development.
///
/// The page gets a short-lived token of the hub's Listen policy, never a key. If the browser's own
/// push service cannot be reached, the emulator takes its place.
struct DevelopmentBrowserController: BrowserPageController {
  struct Options: Sendable {
    let hub: String
    /// The emulator; `nil` if it does not stand in for Web Push.
    let control: EmulatorControl?
    /// The lifetime of a token, in seconds.
    var tokenLifetime: TimeInterval = 15 * 60
    /// The time limit for a push.
    var patience = Duration.seconds(10)
  }

  let service: HubService
  let options: Options

  func settings(host: String, isSecure: Bool) async throws -> BrowserPageSettings {
    guard let endpoint = ServiceEndpoint(parsing: (isSecure ? "https://" : "http://") + host) else {
      throw HubFailure(status: 400, message: "The Host header is no host")
    }
    let listen = try await service.policies.get(
      named: AccessPolicy.defaultListenName, hub: options.hub)
    let expiresAt = service.clock.now().addingTimeInterval(options.tokenLifetime)
    let token = SharedAccessSignature(
      resource: endpoint.resource(hub: options.hub), keyName: listen.name, key: listen.primaryKey,
      expiresAt: expiresAt)
    return BrowserPageSettings(
      hub: options.hub, token: token.text, expiresAt: Int(expiresAt.timeIntervalSince1970),
      vapidPublicKey: try await vapidPublicKey(), localPush: options.control != nil)
  }

  private func vapidPublicKey() async throws -> String {
    let credential = try await service.credentials.list(hub: options.hub)
      .first { $0.platform == .browser }
    guard let key = credential?.properties["VapidPublicKey"] else {
      throw HubFailure(
        status: 409, message: "The hub has no Web Push credential: belfry credential set web")
    }
    return key
  }

  // MARK: The push service of this machine

  func subscribe(_ wanted: LocalSubscription.Wanted) async throws -> LocalSubscription {
    let control = try control()
    guard try await vapidPublicKey() == wanted.vapidPublicKey else {
      throw HubFailure(
        status: 409, message: "The hub has another VAPID key by now; reload the page")
    }
    let app = try await control.webApp(vapidPublicKey: wanted.vapidPublicKey)
    let device: EmulatorControl.Device
    do {
      device = try await control.createSubscription(
        app: app.appId, p256dh: wanted.p256dh, auth: wanted.auth)
    } catch let failure as CommandFailure where failure.exitCode == .refused {
      throw HubFailure(status: 400, message: failure.description)
    }
    guard let endpoint = device.handle.members["endpoint"] else {
      throw CommandFailure("the emulator gave no endpoint", exitCode: .defect)
    }
    return LocalSubscription(id: Self.id(device.deviceId, endpoint), endpoint: endpoint)
  }

  func subscription(_ id: String) async throws -> LocalSubscription? {
    guard let name = Self.deviceID(id), let device = try await control().device(name),
      device.pns == PushPlatform.browser.traits.phone?.service, device.state == "registered",
      let endpoint = device.handle.members["endpoint"], id == Self.id(name, endpoint)
    else { return nil }
    return LocalSubscription(id: id, endpoint: endpoint, lastEvent: device.lastSeq ?? 0)
  }

  func unsubscribe(_ id: String) async throws {
    guard let name = Self.deviceID(id) else { return }
    try await control().unregister(device: name)
  }

  func messages(
    of subscription: LocalSubscription, after: Int?
  ) -> AsyncThrowingStream<ServerSentEvent, any Error> {
    guard let control = options.control, let name = Self.deviceID(subscription.id) else {
      return AsyncThrowingStream { $0.finish() }
    }
    // Event numbers beyond the emulator's last one date from before it lost its state.
    let last = subscription.lastEvent
    let events = control.events(device: name, after: min(max(after ?? last, 0), last))
    return .whileIterated { yield in
      for try await event in events {
        if let push = ServerSentEvent(arrival: event) { yield(push) }
        if event.endsSubscription { return yield(ServerSentEvent(event: "ended", data: "{}")) }
      }
    }
  }

  private func control() throws -> EmulatorControl {
    guard let control = options.control else {
      throw HubFailure(status: 404, message: "There is no push service on this machine")
    }
    return control
  }

  /// The device's name with the unguessable part of its endpoint.
  private static func id(_ device: String, _ endpoint: String) -> String {
    device + "." + (endpoint.split(separator: "/").last ?? "")
  }

  /// The device's name, which becomes part of a URL.
  private static func deviceID(_ id: String) -> String? {
    let name = id.prefix { $0 != "." }
    let digits = name.dropFirst(4)
    let isName =
      name.hasPrefix("dev-") && (1...9).contains(digits.utf8.count)
      && digits.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    return isName ? String(name) : nil
  }

  // MARK: Sending

  func push(_ wanted: BrowserPush) async throws -> BrowserPush.Report {
    // The id becomes part of a tag expression.
    guard UUID(uuidString: wanted.installationId) != nil else {
      throw HubFailure(status: 400, message: "The page's installation ids are UUIDs")
    }
    let hub = try await service.hub(named: options.hub)
    let tag = Tag.installation(wanted.installationId)
    let record = try await service.send(
      hub: hub,
      headers: [
        (WireName.format, WireName.templateFormat), (WireName.tags, tag.rawValue),
        (WireName.contentType, WireName.json),
      ], body: Array(try JSONEncoder().encode(["message": wanted.message])))
    let end = try await service.dispatcher.record(
      of: record.id, hub: hub.id, finishedWithin: options.patience)
    return try await report(end ?? record, hub: hub)
  }

  private func report(
    _ record: NotificationRecord, hub: Hub
  ) async throws -> BrowserPush.Report {
    let id = record.id.rawValue
    guard record.state.isFinal else {
      return .init(ok: false, text: "Still on its way: belfry notification show \(id)")
    }
    if record.state == .noTargetFound {
      return .init(ok: false, text: "The hub does not have this browser any more; subscribe again.")
    }
    if record.counts.contains(where: { $0.key.outcome == .success && $0.value > 0 }) {
      let seconds = record.endedAt.map { $0.timeIntervalSince(record.enqueuedAt) } ?? 0
      let milliseconds = Int((max(0, seconds) * 1000).rounded(.up))
      return .init(ok: true, text: "The push service took it \(milliseconds) ms after the send.")
    }
    let page = try await service.notifications.deviceOutcomes(
      of: record.id, hub: hub, OutcomeFilter(), after: 0, limit: 1)
    let reason = page.devices.first.map { device in
      device.outcomeName + (device.reason.map { ", \($0)" } ?? "")
    }
    return .init(
      ok: false,
      text:
        "Not delivered: \(reason ?? record.state.rawValue). More: belfry notification explain \(id)"
    )
  }
}

extension StreamedEvent {
  /// Whether the event says that the endpoint is no longer valid.
  fileprivate var endsSubscription: Bool {
    struct State: Decodable { let state: String }
    guard name == "state",
      let change = try? JSONDecoder().decode(State.self, from: Data(data.utf8))
    else { return false }
    return change.state == "unregistered" || change.state == "rotated"
  }
}

extension ServerSentEvent {
  /// The message that reached the subscription; `nil` for other events.
  fileprivate init?(arrival: StreamedEvent) {
    struct Arrival: Decodable { let payloadBase64: String }
    struct Push: Encodable { let body: String }
    guard arrival.name == "notification",
      let message = try? JSONDecoder().decode(Arrival.self, from: Data(arrival.data.utf8)),
      let push = try? JSONEncoder().encode(Push(body: message.payloadBase64))
    else { return nil }
    self.init(event: "push", id: arrival.id, data: String(decoding: push, as: UTF8.self))
  }
}
