import Foundation
import NotificationHubs
import Wire

/// A client of the emulator's control API (`/v1`), for the virtual phone and for
/// `belfry up --emulator`.
struct EmulatorControl: Sendable {
  /// An app of the emulator.
  struct App: Decodable, Sendable {
    let appId: String
    let bundleId: String?
    let teamId: String?
    let keys: [Key]?
    /// The service; `nil` from an emulator that predates multiple services.
    let pns: String?
    let projectId: String?
    let serviceAccounts: [ServiceAccount]?
    let tokenUri: String?
    let vapidPublicKey: String?
    let packageSid: String?
    let clientId: String?
    let apiKey: String?
    let packageName: String?
  }

  struct Key: Decodable, Sendable { let kid: String }

  struct NewKey: Encodable {
    let kid: String
    let publicKeyPem: String
  }

  struct ServiceAccount: Codable, Sendable {
    let clientEmail: String
    let privateKeyId: String
    let publicKeyPem: String
  }

  struct Device: Decodable, Sendable {
    /// A handle; its members depend on the service.
    struct Handle: Decodable, Sendable {
      let members: [String: String]

      init(from decoder: any Decoder) throws {
        struct Text: Decodable {
          let text: String?
          init(from decoder: any Decoder) throws {
            text = try? decoder.singleValueContainer().decode(String.self)
          }
        }
        members = try [String: Text](from: decoder).compactMapValues(\.text)
      }
    }
    let deviceId: String
    let handle: Handle
  }

  struct Info: Decodable, Sendable {
    struct Listeners: Decodable, Sendable {
      let production: String
      let sandbox: String
      /// The URL of channel management; `nil` from an emulator that predates channels.
      let channelsProduction: String?
    }
    /// The URLs of a service by protocol.
    struct Service: Decodable, Sendable {
      let http2: String?
      let http1: String?
    }
    let apns: Listeners
    /// The services other than APNs, by name.
    private let others: [String: Service]

    private struct Name: CodingKey {
      let stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
      let members = try decoder.container(keyedBy: Name.self)
      apns = try members.decode(Listeners.self, forKey: Name(stringValue: "apns"))
      var others: [String: Service] = [:]
      for name in PushPlatform.phones.compactMap(\.traits.phone?.service) where name != "apns" {
        others[name] = try members.decodeIfPresent(Service.self, forKey: Name(stringValue: name))
      }
      self.others = others
    }

    subscript(name: String) -> Service? { others[name] }

    /// The base URLs by service name.
    var services: [String: String] { others.compactMapValues { $0.http2 ?? $0.http1 } }
  }

  /// The base URL, for example `http://127.0.0.1:9400`.
  let base: URL

  init(_ text: String) throws {
    guard let url = URL(string: text), url.scheme == "http" || url.scheme == "https",
      url.host != nil
    else {
      throw UsageError(
        "'\(text)' is not the address of an emulator; one looks like http://127.0.0.1:9400")
    }
    base = url
  }

  func info() async throws -> Info { try await get("v1/info") }

  /// Whether this is the emulator whose APNs has this address.
  func answers(at endpoint: String) async throws -> Bool {
    do { return try await info().apns.production == endpoint } catch is CommandFailure {
      return false
    }
  }

  func apps() async throws -> [App] {
    struct Reply: Decodable { let apps: [App] }
    let reply: Reply = try await get("v1/apps")
    return reply.apps
  }

  /// The members of an app to create or change.
  struct Members: Encodable {
    var pns: String?
    var bundleId: String?
    var keys: [NewKey]?
    var projectId: String?
    var serviceAccounts: [ServiceAccount]?
  }

  /// Returns a matching app, creating it if there is none.
  ///
  /// - Parameters:
  ///   - members: All members of a new app.
  ///   - change: The members to add to an existing app, such as a key or a secret; `nil` leaves it
  ///     unchanged.
  ///   - isWhole: Whether an existing app already has them.
  @discardableResult
  func app<NewApp: Encodable>(
    _ members: NewApp, adding change: NewApp?, where fits: (App) -> Bool,
    unless isWhole: (App) -> Bool = { _ in false }
  ) async throws -> App {
    guard let present = try await apps().first(where: fits) else {
      return try await send("POST", "v1/apps", members)
    }
    guard let change, !isWhole(present) else { return present }
    return try await send("PATCH", "v1/apps/\(present.appId)", change)
  }

  /// Returns the web app with a VAPID key, creating it if there is none.
  func webApp(vapidPublicKey key: String) async throws -> App {
    try await app(["pns": "webpush", "vapidPublicKey": key], adding: nil) {
      $0.vapidPublicKey == key
    }
  }

  /// Creates a virtual phone that is online while its events are being read.
  func createDevice(
    app: String, presence: String = "stream", isSandbox: Bool = false
  ) async throws -> Device {
    struct Reply: Decodable { let devices: [Device] }
    let reply: Reply = try await send(
      "POST", "v1/devices",
      ["appId": app, "presence": presence].merging(isSandbox ? ["environment": "sandbox"] : [:]) {
        $1
      })
    guard let device = reply.devices.first else {
      throw CommandFailure("the emulator made no device", exitCode: .unreachable)
    }
    return device
  }

  /// Returns a device; `nil` if the emulator does not have it.
  func device(_ id: String) async throws -> Device? {
    let reply = try await answer("GET", "v1/devices/\(id.percentEncoded)")
    return reply.status == 404 ? nil : try decode(try accepted(reply))
  }

  /// Gives a device another handle.
  func rotate(_ device: String) async throws -> Device {
    try await send("POST", "v1/devices/\(device)/rotate", [String: String]())
  }

  /// Lets the user of a device turn notifications off or on.
  func setDisabled(_ isDisabled: Bool, _ device: String) async throws {
    struct Change: Encodable { let disabled: Bool }
    let _: Device = try await send("PATCH", "v1/devices/\(device)", Change(disabled: isDisabled))
  }

  /// Subscribes a device to a broadcast channel, as an app does with ActivityKit.
  func subscribe(_ device: String, to channel: String) async throws {
    struct Reply: Decodable { let deviceId: String }
    let _: Reply = try await send(
      "POST", "v1/devices/\(device)/subscribe", ["channelId": channel])
  }

  /// The certificate of the emulator's authority in PEM.
  func authority() async throws -> String {
    String(decoding: try accepted(try await answer("GET", "v1/ca.pem")), as: UTF8.self)
  }

  /// The events of a device from now on, until the stream is dropped.
  func events(device: String, after: Int? = nil) -> AsyncThrowingStream<StreamedEvent, any Error> {
    events(at: "v1/devices/\(device)/events", after: after)
  }

  /// The events of the device, or of the app's devices, at a path.
  func events(at path: String, after: Int?) -> AsyncThrowingStream<StreamedEvent, any Error> {
    guard var url = address(path) else { return AsyncThrowingStream { $0.finish() } }
    if let after { url.append(queryItems: [URLQueryItem(name: "after", value: "\(after)")]) }
    return EventStreamReader.read(url)
  }

  func get<Reply: Decodable>(_ path: String) async throws -> Reply {
    try decode(try accepted(try await answer("GET", path)))
  }

  private func send<Reply: Decodable>(
    _ method: String, _ path: String, _ body: some Encodable
  ) async throws -> Reply {
    try decode(try accepted(try await answer(method, path, try JSONEncoder().encode(body))))
  }

  private func decode<Reply: Decodable>(_ data: Data) throws -> Reply {
    do {
      return try JSONDecoder().decode(Reply.self, from: data)
    } catch {
      throw CommandFailure(
        "\(base.absoluteString) answers, but not as a Belfry emulator does", exitCode: .unreachable)
    }
  }

  /// - Parameter path: The path from `v1` on, encoded and with its query.
  private func address(_ path: String) -> URL? {
    let base = base.absoluteString
    return URL(string: (base.hasSuffix("/") ? base : base + "/") + path)
  }

  /// Returns the emulator's reply unchanged, including refusals.
  func answer(
    _ method: String, _ path: String, _ body: Data? = nil
  ) async throws -> TransportReply {
    guard let url = address(path) else {
      throw CommandFailure("'\(path)' is not a path of the emulator", exitCode: .usage)
    }
    do {
      return try await ClientTransport.shared.send(
        TransportRequest(
          method: method, url: url,
          headers: body == nil ? [:] : ["Content-Type": "application/json"], body: body))
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      throw CommandFailure(
        "cannot reach the emulator at \(base.absoluteString): \(error). `belfry emulator` starts one",
        exitCode: .unreachable)
    }
  }

  /// - Throws: An error with the emulator's message for a refusal.
  private func accepted(_ reply: TransportReply) throws -> Data {
    guard (200..<300).contains(reply.status) else {
      struct Refusal: Decodable {
        struct Fault: Decodable { let message: String }
        let error: Fault
      }
      let message = (try? JSONDecoder().decode(Refusal.self, from: reply.body))?.error.message
      throw CommandFailure(
        "the emulator refused: \(message ?? "HTTP status \(reply.status)")")
    }
    return reply.body
  }
}
