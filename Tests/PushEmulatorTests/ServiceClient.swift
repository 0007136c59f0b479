import Cryptography
import Foundation
import HTTP2
import HTTPClient
import Testing
import Wire

@testable import PushEmulator

/// What a stand-in of two ports is asked over.
enum Transport: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case http2, http1

  var testDescription: String { rawValue }
}

/// A hub's client of one service, over either transport.
struct ServiceClient: Sendable {
  struct Reply: Sendable {
    /// 0 when there was none.
    var status = 0
    var headers: [String: String] = [:]
    var body: [UInt8] = []
    var failure: HTTP2Failure?

    var json: JSONValue { (try? JSONValue.read(body, uniqueNames: true)) ?? .null }
    /// `error.status` of Google's errors.
    var errorStatus: String? { json["error"]?["status"]?.text }
    /// `FcmError.errorCode`.
    var fcmError: String? {
      (json["error"]?["details"]?.items ?? []).compactMap { $0["errorCode"]?.text }.first
    }
    /// The fields that `BadRequest` names.
    var fields: [String] {
      (json["error"]?["details"]?.items ?? []).flatMap { $0["fieldViolations"]?.items ?? [] }
        .compactMap { $0["field"]?.text }
    }
  }

  private static let replyHeaders = [
    "content-type", "location", "ttl", "link", "retry-after", "www-authenticate", "x-test",
  ]

  let transport: Transport
  /// Base URL.
  let origin: String
  private let connection: HTTP2Connection?
  private let session: HTTPSession?

  init(_ addresses: EmulatorAddresses, _ service: PushService, over transport: Transport) {
    self.transport = transport
    let listener = EmulatorListener.besideAPNs.first {
      $0.service == service && $0.isHTTP2 == (transport == .http2)
    }
    origin = listener.map { addresses[$0] } ?? ""
    if transport == .http2 {
      var configuration = HTTP2ConnectionConfiguration(
        host: "127.0.0.1", port: UInt16(origin.split(separator: ":").last ?? "") ?? 0)
      configuration.serverName = "localhost"
      configuration.extraAnchorsPEM = Array(addresses.authorityPEM.utf8)
      connection = HTTP2Connection(configuration)
      session = nil
    } else {
      var configuration = HTTPSessionConfiguration()
      configuration.extraAnchorsPEM = Array(addresses.authorityPEM.utf8)
      configuration.allowsPlainHTTP = true
      session = HTTPSession(configuration)
      connection = nil
    }
  }

  func close() {
    connection?.close()
    session?.close()
  }

  func send(
    _ method: String = "POST", _ path: String, _ headers: [(String, String)] = [],
    body: [UInt8] = []
  ) async -> Reply {
    if let session { return await send(session, method, path, headers, body) }
    guard let connection else { return Reply() }
    var batch = HTTP2RequestBatch(
      method: method, authority: String(origin.dropFirst("https://".count)),
      replyHeaders: Self.replyHeaders, keepsSuccessBodies: true)
    let fields = batch.addFieldSet(headers.map { HTTP2Field($0.0.lowercased(), $0.1) })
    let range = body.isEmpty ? HTTP2ByteRange.empty : batch.write { $0 += body }
    batch.addRequest(path: batch.write(path), fields: fields, body: range)
    let replies = await connection.send(batch)
    var reply = Reply()
    reply.status = Int(replies.replies[0].status)
    reply.body = Array(replies.body(of: 0))
    reply.failure = replies.replies[0].failure
    if reply.failure != nil { reply.status = 0 }
    for (place, name) in Self.replyHeaders.enumerated() {
      reply.headers[name] = replies.value(ofHeader: place, in: 0)
    }
    return reply
  }

  private func send(
    _ session: HTTPSession, _ method: String, _ path: String, _ headers: [(String, String)],
    _ body: [UInt8]
  ) async -> Reply {
    var reply = Reply()
    do {
      let answer = try await session.send(
        HTTPCall(
          method: method, url: origin + path, headers: headers.map { (name: $0.0, value: $0.1) },
          body: body))
      reply.status = Int(answer.status)
      reply.body = answer.body
      for name in Self.replyHeaders { reply.headers[name] = answer[name] }
    } catch {
      reply.failure = .cancelled
    }
    return reply
  }
}

extension Harness {
  func client(_ service: PushService, over transport: Transport = .http2) -> ServiceClient {
    ServiceClient(addresses, service, over: transport)
  }

  /// Makes an app.
  func app(_ body: JSONValue) async throws -> JSONValue {
    try await control("POST", "/v1/apps", body)
  }

  /// Makes one device of an app.
  func device(of app: JSONValue, _ more: JSONValue = .object([])) async throws -> JSONValue {
    let body = JSONValue.object(
      [.init("appId", app["appId"] ?? .null)] + (more.members ?? []))
    let reply = try await control("POST", "/v1/devices", body)
    guard let device = reply["devices"]?.items.first else {
      throw Failure(description: "no device in the answer")
    }
    return device
  }

  func eventNames(_ device: JSONValue) async throws -> [String] {
    try await events(device["deviceId"]?.text ?? "").map(\.name)
  }

  func patch(_ device: JSONValue, _ change: JSONValue) async throws {
    try await control("PATCH", "/v1/devices/\(device["deviceId"]?.text ?? "")", change)
  }

  func delivered(_ device: JSONValue) async throws -> [JSONValue] {
    try await notifications(device["deviceId"]?.text ?? "")
  }

  func lastRequest() async throws -> JSONValue {
    try await control("GET", "/v1/requests")["requests"]?.items.last ?? .null
  }
}

/// The published vectors of FCM and Web Push (`Fixtures/fcm-webpush-vectors.json`).
enum ServiceVectors {
  static let all: JSONValue = {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("Fixtures/fcm-webpush-vectors.json")
    do {
      return try JSONValue.read(Array(Data(contentsOf: file)), uniqueNames: true)
    } catch {
      fatalError("the fixture cannot be read: \(error)")
    }
  }()
}

extension JSONValue {
  /// The member at a path of names.
  func at(_ names: String...) -> JSONValue {
    names.reduce(self) { value, name in value[name] ?? .null }
  }

  /// With members set, or removed by `null`.
  func setting(_ changes: JSONValue) -> JSONValue {
    var members = self.members ?? []
    for change in changes.members ?? [] {
      members.removeAll { $0.name == change.name }
      if change.value != .null { members.append(change) }
    }
    return .object(members)
  }
}
