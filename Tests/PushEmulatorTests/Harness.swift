import Cryptography
import Foundation
import HTTP2
import Wire

@testable import PushEmulator

/// A running emulator on free ports, and a client that speaks to it as a hub would.
struct Harness: Sendable {
  let server: EmulatorServer
  let addresses: EmulatorAddresses

  /// When the clock of most tests stands still, in ms: that of the vectors.
  static let noon: Int64 = 1_700_000_060_000

  /// Starts an emulator, runs a test against it, and stops it.
  static func run(
    _ options: EmulatorOptions = .changed(),
    _ body: (Harness) async throws -> Void
  ) async throws {
    await EmulatorGate.shared.enter()
    let server = EmulatorServer(options)
    do {
      try await body(Harness(server: server, addresses: try await server.start()))
    } catch {
      await server.stop()
      await EmulatorGate.shared.leave()
      throw error
    }
    await server.stop()
    await EmulatorGate.shared.leave()
  }

  // MARK: Control

  /// Asks the control API and reads its JSON.
  @discardableResult
  func control(_ method: String, _ target: String, _ body: JSONValue? = nil) async throws
    -> JSONValue
  {
    let text = body.map { String(decoding: $0.jsonBytes, as: UTF8.self) } ?? ""
    let reply = try await server.control(method, target, body: text)
    guard (200..<300).contains(reply.status) else {
      throw Failure(description: "\(reply.status): \(String(decoding: reply.body, as: UTF8.self))")
    }
    return reply.body.isEmpty ? .null : try JSONValue.read(reply.body, uniqueNames: true)
  }

  struct Failure: Error, CustomStringConvertible { let description: String }

  func clock(_ change: JSONValue) async throws { try await control("POST", "/v1/clock", change) }

  func advance(seconds: Int64) async throws {
    try await clock(["advance": JSONValue(seconds * 1000)])
  }

  /// A device's events by name, oldest first.
  func events(_ deviceID: String) async throws -> [(name: String, data: JSONValue)] {
    guard let index = Int(deviceID.dropFirst(4)) else { return [] }
    return try await server.snapshotOfEvents(index - 1)
  }

  func notifications(_ deviceID: String) async throws -> [JSONValue] {
    try await control("GET", "/v1/devices/\(deviceID)/notifications")["notifications"]?.items ?? []
  }

  /// Makes one device.
  func device(
    _ app: EmulatorServer.App, _ more: [JSONValue.Member] = []
  ) async throws -> EmulatorServer.VirtualDevice {
    let body = JSONValue.object([.init("appId", .string(app.appID))] + more)
    let reply = try await control("POST", "/v1/devices", body)
    guard let device = reply["devices"]?.items.first, let id = device["deviceId"]?.text,
      let token = device["handle"]?["token"]?.text
    else { throw Failure(description: "no device in the answer") }
    return .init(deviceID: id, token: token)
  }

  func fault(
    _ action: JSONValue, when: JSONValue = .object([]), stage: String = "before",
    match: JSONValue = .object([])
  ) async throws {
    try await control(
      "POST", "/v1/faults",
      ["pns": "apns", "action": action, "when": when, "stage": .string(stage), "match": match])
  }

  // MARK: APNs

  /// A new connection to an APNs listener.
  func connect(
    sandbox: Bool = false, channels: Bool = false, identity: CertificateIdentity? = nil
  ) throws -> Client {
    let address =
      switch (channels, sandbox) {
      case (false, false): addresses.apnsProduction
      case (false, true): addresses.apnsSandbox
      case (true, false): addresses.apnsChannelsProduction
      case (true, true): addresses.apnsChannelsSandbox
      }
    let port = UInt16(address.split(separator: ":").last ?? "") ?? 0
    var configuration = HTTP2ConnectionConfiguration(host: "127.0.0.1", port: port)
    configuration.serverName = "localhost"
    configuration.extraAnchorsPEM = Array(addresses.authorityPEM.utf8)
    configuration.replyTimeout = .seconds(60)
    if let identity {
      configuration.clientCertificatePEM = Array(identity.certificatePEM.utf8)
      configuration.clientKeyPEM = Array(try identity.privateKeyPEM().utf8)
    }
    return Client(connection: HTTP2Connection(configuration), port: port)
  }

  /// A provider token of an app's key.
  static func token(
    _ app: EmulatorServer.App, issuedAt: Int64 = Harness.noon / 1000, team: String? = nil
  ) throws -> String {
    try token(kid: app.keyID, team: team ?? app.teamID, p8: app.p8, issuedAt: issuedAt)
  }

  static func token(
    kid: String, team: String, p8: String, issuedAt: Int64 = Harness.noon / 1000
  ) throws -> String {
    try CompactJWS.sign(
      header: Array(#"{"alg":"ES256","kid":"\#(kid)"}"#.utf8),
      claims: Array(#"{"iss":"\#(team)","iat":\#(issuedAt)}"#.utf8),
      with: P256PrivateKey(pem: p8))
  }
}

/// A hub's connection to APNs.
struct Client: Sendable {
  let connection: HTTP2Connection
  let port: UInt16

  struct Reply: Sendable {
    let status: Int
    let reason: String?
    let timestamp: Int64?
    let id: String?
    let uniqueID: String?
    /// Of requests about channels.
    let requestID: String?
    let channelID: String?
    let contentType: String?
    let body: [UInt8]
    let failure: HTTP2Failure?
    let goAway: HTTP2GoAway?
  }

  /// Sends one push.
  func push(
    _ path: String, _ headers: [(String, String)], body: [UInt8] = Array(#"{"aps":{}}"#.utf8),
    method: String = "POST"
  ) async -> Reply {
    let replies = await push(paths: [path], headers, body: body, method: method)
    return replies[0]
  }

  /// Sends a push to each path at once.
  func push(
    paths: [String], _ headers: [(String, String)], body: [UInt8] = Array(#"{"aps":{}}"#.utf8),
    method: String = "POST"
  ) async -> [Reply] {
    var batch = HTTP2RequestBatch(
      method: method, authority: "localhost:\(port)",
      replyHeaders: [
        "apns-id", "apns-unique-id", "content-type", "apns-request-id", "apns-channel-id",
      ], keepsSuccessBodies: true)
    let fields = batch.addFieldSet(headers.map { HTTP2Field($0.0, $0.1) })
    let range = body.isEmpty ? HTTP2ByteRange.empty : batch.write { $0 += body }
    for path in paths {
      let path = batch.write(path)
      batch.addRequest(path: path, fields: fields, body: range)
    }
    let replies = await connection.send(batch)
    return replies.replies.indices.map { index in
      let body = Array(replies.body(of: index))
      let json = try? JSONValue.read(body, uniqueNames: true)
      return Reply(
        status: Int(replies.replies[index].status), reason: json?["reason"]?.text,
        timestamp: json?["timestamp"]?.whole, id: replies.value(ofHeader: 0, in: index),
        uniqueID: replies.value(ofHeader: 1, in: index),
        requestID: replies.value(ofHeader: 3, in: index),
        channelID: replies.value(ofHeader: 4, in: index),
        contentType: replies.value(ofHeader: 2, in: index), body: body,
        failure: replies.replies[index].failure, goAway: replies.goAway)
    }
  }

  /// Sends one push of an app to a device.
  func push(
    to token: String, _ app: EmulatorServer.App, jwt: String? = nil,
    _ more: [(String, String)] = [], body: String = #"{"aps":{"alert":"hi"}}"#
  ) async throws -> Reply {
    var headers = [
      ("authorization", "bearer " + (try jwt ?? Harness.token(app))),
      ("apns-topic", app.bundleID), ("apns-push-type", "alert"),
    ]
    headers += more
    return await push("/3/device/" + token, headers, body: Array(body.utf8))
  }
}

extension JSONValue {
  var items: [JSONValue] { if case .array(let items) = self { items } else { [] } }
}

extension EmulatorServer {
  /// The kept events of a device, by its index.
  func snapshotOfEvents(_ index: Int) async throws -> [(name: String, data: JSONValue)] {
    try core().withState { state in
      state.devices.events(of: index, after: 0, limit: 10_000).map {
        ($0.name, $0.json(device: index))
      }
    }
  }
}

extension EmulatorOptions {
  /// Free ports and a clock that stands still, and what a test wants different.
  static func changed(_ change: (inout EmulatorOptions) -> Void = { _ in }) -> EmulatorOptions {
    var options = EmulatorOptions.onFreePorts
    options.manualClock = Harness.noon
    change(&options)
    return options
  }
}
