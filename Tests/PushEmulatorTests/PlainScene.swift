import Foundation
import HTTPClient
import Testing
import Wire

@testable import PushEmulator

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// An emulator, an app of a service that speaks HTTP/1.1, one device of it, and a hub's client that
/// speaks to it over TLS.
struct PlainScene: Sendable {
  let harness: Harness
  let app: JSONValue
  let device: JSONValue
  /// Base URL.
  let origin: String
  private let session: HTTPSession

  static func run(
    _ listener: EmulatorListener, app members: JSONValue, device: JSONValue = .object([]),
    _ options: EmulatorOptions = .changed(), _ body: (PlainScene) async throws -> Void
  ) async throws {
    try await Harness.run(options) { harness in
      let app = try await harness.control("POST", "/v1/apps", members)
      var configuration = HTTPSessionConfiguration()
      configuration.extraAnchorsPEM = Array(harness.addresses.authorityPEM.utf8)
      let scene = PlainScene(
        harness: harness, app: app, device: try await Self.makeDevice(harness, app, device),
        origin: harness.addresses[listener], session: HTTPSession(configuration))
      try await body(scene)
      scene.session.close()
    }
  }

  private static func makeDevice(
    _ harness: Harness, _ app: JSONValue, _ more: JSONValue
  ) async throws -> JSONValue {
    let members = [JSONValue.Member("appId", app["appId"] ?? .null)] + (more.members ?? [])
    let reply = try await harness.control("POST", "/v1/devices", .object(members))
    return try #require(reply["devices"]?.items.first)
  }

  /// Another device of the app, or of another.
  func another(_ more: JSONValue = .object([]), of other: JSONValue? = nil) async throws
    -> JSONValue
  {
    try await Self.makeDevice(harness, other ?? app, more)
  }

  static func id(_ device: JSONValue) -> String { device["deviceId"]?.text ?? "" }

  func eventNames(_ device: JSONValue? = nil) async throws -> [String] {
    try await harness.events(Self.id(device ?? self.device)).map(\.name)
  }

  func delivered(_ device: JSONValue? = nil) async throws -> [JSONValue] {
    try await harness.notifications(Self.id(device ?? self.device))
  }

  func stored(_ device: JSONValue? = nil) async throws -> [JSONValue] {
    let target = "/v1/devices/\(Self.id(device ?? self.device))/stored"
    return try await harness.control("GET", target)["stored"]?.items ?? []
  }

  func change(_ change: JSONValue, _ device: JSONValue? = nil) async throws {
    try await harness.control("PATCH", "/v1/devices/\(Self.id(device ?? self.device))", change)
  }

  func unregister(_ mode: JSONValue, _ device: JSONValue? = nil) async throws {
    let target = "/v1/devices/\(Self.id(device ?? self.device))/unregister"
    try await harness.control("POST", target, mode)
  }

  func send(
    _ method: String = "POST", _ path: String, _ headers: [(name: String, value: String)] = [],
    body: [UInt8] = []
  ) async throws -> HTTPReply {
    let url = path.hasPrefix("https:") ? path : origin + path
    return try await session.send(
      HTTPCall(method: method, url: url, headers: headers, body: body))
  }

  static let form = (name: "Content-Type", value: "application/x-www-form-urlencoded")

  /// Names and values as a form writes them (the vectors' `oauth_forms`).
  static func form(_ fields: [(String, String)]) -> [UInt8] {
    func encoded(_ text: String) -> String {
      text.utf8.reduce(into: "") { out, byte in
        switch byte {
        case UInt8(ascii: " "): out += "+"
        case UInt8(ascii: "*"), UInt8(ascii: "."): out.unicodeScalars.append(.init(byte))
        default:
          if byte.isBase64URL {
            out.unicodeScalars.append(.init(byte))
          } else {
            let hex = String(byte, radix: 16, uppercase: true)
            out += "%" + (hex.count < 2 ? "0" : "") + hex
          }
        }
      }
    }
    return Array(fields.map { encoded($0.0) + "=" + encoded($0.1) }.joined(separator: "&").utf8)
  }

  func post(form fields: [(String, String)], to path: String) async throws -> HTTPReply {
    try await send("POST", path, [Self.form], body: Self.form(fields))
  }

  /// Sends bytes as they are over a plain connection, for what no well-behaved client sends.
  /// On a thread of its own: it blocks, and the server it waits for needs the others.
  /// - Returns: The status of the answer.
  static func raw(_ text: String, port: UInt16) async throws -> Int {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(with: Result { try blockingRaw(text, port: port) })
      }
    }
  }

  private static func blockingRaw(_ text: String, port: UInt16) throws -> Int {
    #if canImport(Darwin)
      let type = SOCK_STREAM
    #else
      // No process that another test starts may inherit it.
      let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    #endif
    let socket = socket(AF_INET, type, 0)
    defer { close(socket) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw Harness.Failure(description: "cannot connect") }
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let bytes = Array(text.utf8)
    guard write(socket, bytes, bytes.count) == bytes.count else {
      throw Harness.Failure(description: "cannot write")
    }
    var buffer = [UInt8](repeating: 0, count: 4096)
    var answer = ""
    while true {
      let count = read(socket, &buffer, buffer.count)
      guard count > 0 else { throw Harness.Failure(description: "no answer") }
      answer += String(decoding: buffer.prefix(count), as: UTF8.self)
      // An interim answer may come together with the final one.
      let statuses = answer.split(separator: "\r\n").filter { $0.hasPrefix("HTTP/1.1 ") }
        .compactMap { Int($0.dropFirst(9).prefix(3)) }
      if let status = statuses.first(where: { $0 != 100 }) { return status }
    }
  }
}

extension HTTPReply {
  var json: JSONValue { (try? JSONValue.read(body, uniqueNames: true)) ?? .null }
}

/// The published vectors of WNS, ADM and Baidu (`Fixtures/plain-service-vectors.json`).
enum PlainVectors {
  static let all: JSONValue = {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("Fixtures/plain-service-vectors.json")
    do {
      return try JSONValue.read(Array(Data(contentsOf: file)), uniqueNames: true)
    } catch {
      fatalError("the fixture cannot be read: \(error)")
    }
  }()

  struct Case: CustomTestStringConvertible, Sendable {
    let json: JSONValue
    var testDescription: String { json["name"]?.text ?? "case" }
  }

  static func cases(_ section: String) -> [Case] {
    (all[section]?["cases"]?.items ?? []).map { Case(json: $0) }
  }
}
