import Foundation
import NotificationHubs
import Testing

/// The file DemoSettings.swift beside this one is the example's.
@Suite("The example's settings")
struct DemoSettingsTests {
  @Test("the tutorial's four keys make the connection")
  func tutorialSettings() throws {
    let settings = try DemoSettings(
      propertyList: plist([
        "notificationHubNamespace": "contoso", "notificationHubName": "hub1",
        "notificationHubKeyName": "Listen", "notificationHubKey": "abc=",
      ]))
    #expect(settings.connection?.endpoint.host == "contoso.servicebus.windows.net")
    #expect(settings.connection?.keyName == "Listen")
    #expect(settings.hub == "hub1")
    #expect(settings.backend == nil)
  }

  @Test("a namespace with a dot is a host, for clouds other than the public one")
  func sovereignSettings() throws {
    let settings = try DemoSettings(
      propertyList: plist([
        "notificationHubNamespace": "contoso.servicebus.chinacloudapi.cn",
        "notificationHubName": "hub1", "notificationHubKeyName": "Listen",
        "notificationHubKey": "abc=",
      ]))
    #expect(settings.connection?.endpoint.host == "contoso.servicebus.chinacloudapi.cn")
  }

  @Test("a connection string reaches any hub, and a backend needs no key at all")
  func otherSettings() throws {
    let settings = try DemoSettings(
      propertyList: plist([
        "connectionString":
          "Endpoint=sb://127.0.0.1:8080/;SharedAccessKeyName=L;SharedAccessKey=abc=",
        "notificationHubName": "demo", "backendURL": "http://127.0.0.1:8090",
      ]))
    #expect(settings.connection?.endpoint.port == 8080)
    #expect(settings.backend?.port == 8090)
    let alone = try DemoSettings(propertyList: plist(["backendURL": "https://push.example.com"]))
    #expect(alone.connection == nil)
    // The example's file, in which the backend alone was filled in.
    let example = try DemoSettings(
      propertyList: plist([
        "notificationHubNamespace": "<hubNamespace>", "notificationHubName": "<hubName>",
        "notificationHubKeyName": "DefaultListenSharedAccessSignature",
        "notificationHubKey": "<hubKey>", "backendURL": "http://127.0.0.1:8090",
      ]))
    #expect(example.backend?.port == 8090 && example.connection == nil)
  }

  @Test(
    "a setting that is missing or was not filled in is named",
    arguments: [
      ([:], "notificationHubNamespace"),
      (["notificationHubNamespace": "a"], "notificationHubKeyName"),
      (["notificationHubNamespace": "<hubNamespace>"], "notificationHubNamespace"),
      (["connectionString": "nonsense"], "connectionString"),
      (["backendURL": "no address"], "backendURL"),
    ])
  func badSettings(_ values: [String: String], key: String) throws {
    let error = #expect(throws: DemoSettingsError.self) {
      try DemoSettings(propertyList: plist(values))
    }
    #expect(error?.description.contains(key) == true)
    #expect(throws: DemoSettingsError.self) { try DemoSettings(propertyList: Data("x".utf8)) }
  }

  private func plist(_ values: [String: String]) throws -> Data {
    try PropertyListSerialization.data(fromPropertyList: values, format: .xml, options: 0)
  }
}
