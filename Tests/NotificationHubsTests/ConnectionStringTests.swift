import Foundation
import Testing

@testable import NotificationHubs

@Suite("Connection strings (spec sas.md 1)")
struct ConnectionStringTests {
  static let key = "3Zk8Qd1v+LrXo5/TbYpW7nMj0CsEfUgHi2KaNwR9x6A="
  static let text =
    "Endpoint=sb://contoso-ns.servicebus.windows.net/;"
    + "SharedAccessKeyName=DefaultListenSharedAccessSignature;SharedAccessKey=\(key)"

  @Test("the example reads and prints back")
  func roundTrip() throws {
    let connection = try ConnectionString(Self.text)
    #expect(connection.endpoint.host == "contoso-ns.servicebus.windows.net")
    #expect(connection.endpoint.usesTLS)
    #expect(connection.keyName == "DefaultListenSharedAccessSignature")
    #expect(connection.key == Self.key)
    #expect(connection.text == Self.text)
  }

  @Test(
    "order, letter case, a trailing semicolon, blanks and further parts play no role",
    arguments: [
      text.replacingOccurrences(of: ";", with: " ; ").replacingOccurrences(of: "=sb", with: "= sb"),
      text + " ;EntityPath=hub1",
      text + ";", text + ";EntityPath=hub1", " \(text)\n", "StsEndpoint=https://x/;" + text,
      text.replacingOccurrences(of: "Endpoint", with: "ENDPOINT")
        .replacingOccurrences(of: "SharedAccessKey=", with: "sharedaccesskey="),
      text.split(separator: ";").reversed().joined(separator: ";"),
      text.replacingOccurrences(of: "windows.net/", with: "windows.net"),
      text.replacingOccurrences(of: "sb://contoso", with: "https://Contoso"),
    ])
  func leniency(text: String) throws {
    #expect(try ConnectionString(text).text == Self.text)
  }

  @Test(
    "the error names the missing part",
    arguments: ["Endpoint", "SharedAccessKeyName", "SharedAccessKey"])
  func missingPart(name: String) {
    let parts = Self.text.split(separator: ";")
    let without = parts.filter { !$0.hasPrefix(name + "=") }.joined(separator: ";")
    let empty = parts.map { $0.hasPrefix(name + "=") ? name + "=" : $0 }.joined(separator: ";")
    for text in [without, empty] {
      let error = #expect(throws: ConnectionStringError.self) { try ConnectionString(text) }
      #expect(error?.missingPart == name)
      #expect(error?.description.contains("'\(name)'") == true)
    }
  }

  @Test(
    "malformed parts and endpoints are refused without repeating a key",
    arguments: [
      "Endpoint;SharedAccessKeyName=a;SharedAccessKey=\(key)", text + ";SharedAccessKey=x",
      text.replacingOccurrences(of: "sb://", with: ""),
      text.replacingOccurrences(of: "sb://", with: "ftp://"),
      text.replacingOccurrences(of: ".net/", with: ".net/hub1/"),
      text.replacingOccurrences(of: ".net/", with: ".net:0/"),
      text.replacingOccurrences(of: ".net/", with: ".net:port/"),
      text.replacingOccurrences(of: "contoso-ns.servicebus.windows.net", with: ""),
      text.replacingOccurrences(of: "contoso", with: "user@contoso"),
    ])
  func malformed(text: String) {
    let error = #expect(throws: ConnectionStringError.self) { try ConnectionString(text) }
    #expect(error?.description.contains(Self.key) == false)
    #expect(error?.missingPart == nil)
  }

  @Test(
    "endpoints",
    arguments: [
      ("sb://h/", "https://h", "sb://h/"), ("sb://h:8443/", "https://h:8443", "sb://h:8443/"),
      ("https://H", "https://h", "sb://h/"),
      ("sb://localhost:8080/", "http://localhost:8080", "sb://localhost:8080/"),
      ("http://localhost:8080/", "http://localhost:8080", "sb://localhost:8080/"),
      ("https://localhost:8443/", "https://localhost:8443", "https://localhost:8443/"),
      ("sb://127.0.0.1:80/", "http://127.0.0.1:80", "sb://127.0.0.1:80/"),
      ("sb://[::1]:80/", "http://[::1]:80", "sb://[::1]:80/"),
      ("sb://hub.localhost:80/", "http://hub.localhost:80", "sb://hub.localhost:80/"),
      ("sb://localhost/", "https://localhost", "sb://localhost/"),
      (
        "sb://127.0.0.1.example.com:80/", "https://127.0.0.1.example.com:80",
        "sb://127.0.0.1.example.com:80/"
      ),
      ("http://hub.internal:8080/", "http://hub.internal:8080", "http://hub.internal:8080/"),
    ])
  func endpoints(text: String, url: String, printed: String) throws {
    let endpoint = try #require(ServiceEndpoint(parsing: text))
    #expect(endpoint.url == url)
    #expect(endpoint.description == printed)
    #expect(ServiceEndpoint(parsing: printed) == endpoint)
  }

  @Test(
    "every cloud has its suffix",
    arguments: [
      (ServiceEndpoint.Cloud.public, "sb://ns.servicebus.windows.net/"),
      (.china, "sb://ns.servicebus.chinacloudapi.cn/"),
      (.usGovernment, "sb://ns.servicebus.usgovcloudapi.net/"),
      (.germany, "sb://ns.servicebus.cloudapi.de/"),
    ])
  func clouds(cloud: ServiceEndpoint.Cloud, printed: String) {
    #expect(ServiceEndpoint(namespace: "NS", cloud: cloud).description == printed)
  }

  @Test("neither description nor dump shows the key")
  func redaction() throws {
    let connection = try ConnectionString(Self.text)
    var dumped = ""
    dump(connection, to: &dumped)
    for text in ["\(connection)", String(reflecting: connection), dumped] {
      #expect(!text.contains(Self.key))
    }
  }
}
