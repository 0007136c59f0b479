import HubTesting
import Testing

@testable import HTTPServer

@Suite("What a client's hello offers")
struct ClientHelloTests {
  static func field(_ bytes: [UInt8], lengthBytes: Int) -> [UInt8] {
    (0..<lengthBytes).map {
      UInt8(truncatingIfNeeded: bytes.count >> (8 * (lengthBytes - 1 - $0)))
    } + bytes
  }

  /// A hello with these protocols, and with the content of SNI; `nil` leaves either out.
  static func message(_ protocols: [String]?, serverNames: [UInt8]? = nil) -> [UInt8] {
    var extensions: [UInt8] = [0, 10]
    extensions += field([0, 2, 0, 29], lengthBytes: 2)
    if let serverNames {
      extensions += [0, 0]
      extensions += field(serverNames, lengthBytes: 2)
    }
    if let protocols {
      let names: [UInt8] = protocols.flatMap { field(Array($0.utf8), lengthBytes: 1) }
      extensions += [0, 16]
      extensions += field(field(names, lengthBytes: 2), lengthBytes: 2)
    }
    var body: [UInt8] = [3, 3]
    body += [UInt8](repeating: 7, count: 32)
    body += field([1, 2, 3], lengthBytes: 1)
    body += field([0x13, 1], lengthBytes: 2)
    body += field([0], lengthBytes: 1)
    body += field(extensions, lengthBytes: 2)
    return [1] + field(body, lengthBytes: 3)
  }

  static func record(_ bytes: [UInt8]) -> [UInt8] { [22, 3, 1] + field(bytes, lengthBytes: 2) }

  static func read(_ bytes: [UInt8]) -> ClientHello { bytes.withUnsafeBytes { ClientHello($0) } }

  static let offers: [([String]?, ClientHello)] = [
    (nil, .other), ([], .other), (["http/1.1"], .other), (["h2"], .offersHTTP2),
    (["http/1.1", "h2"], .offersHTTP2), (["h2c", "h2-14"], .other), (["", "h2"], .offersHTTP2),
  ]

  @Test("h2 is found wherever it stands in the list", arguments: offers)
  func offer(protocols: [String]?, expected: ClientHello) {
    #expect(Self.read(Self.record(Self.message(protocols))) == expected)
  }

  @Test("the server's name is read, if there is one in the right form")
  func serverName() {
    let host = Self.field(Array("fcm.example".utf8), lengthBytes: 2)
    let cases: [([UInt8]?, String?)] = [
      (Self.field([0] + host, lengthBytes: 2), "fcm.example"), (nil, nil), ([], nil),
      ([0, 0], nil),
      (Self.field([1] + host, lengthBytes: 2), nil), ([0, 4, 0, 0, 9, 1], nil),
      (Self.field([0] + Self.field([0xFF, 0xFE], lengthBytes: 2), lengthBytes: 2), nil),
    ]
    for (names, expected) in cases {
      let hello = Self.record(Self.message(["h2"], serverNames: names))
      #expect(hello.withUnsafeBytes { ClientHello.serverName($0) } == expected)
    }
    let whole = Self.record(Self.message(nil, serverNames: cases[0].0))
    for count in 0..<whole.count {
      #expect(whole[..<count].withUnsafeBytes { ClientHello.serverName($0) } == nil)
    }
  }

  @Test("a hello that has come in part is waited for, whatever part it is")
  func partial() {
    let whole = Self.record(Self.message(["h2"]))
    for count in 0..<whole.count {
      #expect(Self.read(Array(whole[..<count])) == .partial)
    }
    #expect(Self.read(whole + [22, 3]) == .offersHTTP2)
  }

  @Test("a hello may come in several records", arguments: [1, 3, 60])
  func records(size: Int) {
    let message = Self.message(["h2", "http/1.1"])
    let bytes = stride(from: 0, to: message.count, by: size).flatMap {
      Self.record(Array(message[$0..<min($0 + size, message.count)]))
    }
    #expect(Self.read(bytes) == .offersHTTP2)
    #expect(Self.read(Array(bytes.dropLast())) == .partial)
  }

  static let strangers: [[UInt8]] = [
    Array("GET / HTTP/1.1\r\n\r\n".utf8), [22, 3, 1, 0, 0], [22, 2, 1, 0, 4, 1, 0, 0, 0],
    [22, 3, 1, 255, 255], record([2, 0, 0, 1, 0]), record([1, 1, 0, 0]), record([1, 0, 0, 1, 3]),
    record([1, 0, 0, 40] + [UInt8](repeating: 255, count: 40)), [0x80, 0x2E, 1, 3, 1],
  ]

  @Test("what is no hello, or none that can be read, is not waited for", arguments: strangers)
  func stranger(bytes: [UInt8]) {
    #expect(Self.read(bytes) == .other)
  }

  @Test("a hello changed anywhere neither traps nor is waited for beyond its size")
  func changed() {
    let whole = Self.record(Self.message(["h2"]))
    for index in whole.indices {
      for value in [0, 1, 127, 255] as [UInt8] {
        var bytes = whole
        bytes[index] = value
        _ = Self.read(bytes)
      }
    }
  }
}
