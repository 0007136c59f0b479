import Foundation
import NotificationHubs

/// The app's settings: the tutorial's `devsettings.plist`.
///
/// Either the tutorial's four keys, `notificationHubNamespace` (a namespace of the public cloud,
/// or a whole host name such as `contoso.servicebus.chinacloudapi.cn` for another),
/// `notificationHubName`, `notificationHubKeyName` and `notificationHubKey`; or `connectionString`
/// and `notificationHubName`, which also reaches a hub that is not Azure's. `backendURL` names the
/// app backend; with it alone the app needs no key of the hub at all.
struct DemoSettings: Hashable, Sendable {
  /// The hub and a key with which a device can register; `nil` if the backend registers it.
  let connection: ConnectionString?
  let hub: String
  /// `nil` for an app without sign-in.
  let backend: URL?

  init(connection: ConnectionString?, hub: String, backend: URL? = nil) {
    self.connection = connection
    self.hub = hub
    self.backend = backend
  }

  /// The settings in the bundle of the app or of its extension.
  static func ofBundle() throws -> DemoSettings {
    guard let url = Bundle.main.url(forResource: "devsettings", withExtension: "plist") else {
      throw DemoSettingsError("devsettings.plist is missing; the README says what it holds")
    }
    return try DemoSettings(propertyList: Data(contentsOf: url))
  }

  /// Parses a property list.
  /// - Throws: ``DemoSettingsError`` with the key that is missing or invalid.
  init(propertyList: Data) throws {
    guard
      let values = try? PropertyListSerialization.propertyList(from: propertyList, format: nil)
        as? [String: Any]
    else { throw DemoSettingsError("devsettings.plist is not a property list with a dictionary") }
    // A value of the example that was left as it is, such as `<hubKey>`, is none.
    func text(_ key: String) -> String? {
      (values[key] as? String).flatMap { $0.isEmpty || $0.hasPrefix("<") ? nil : $0 }
    }
    backend = try text("backendURL").map { text in
      guard let url = URL(string: text), url.host() != nil else {
        throw DemoSettingsError("'backendURL' in devsettings.plist is not an address")
      }
      return url
    }
    if let string = text("connectionString") {
      do { connection = try ConnectionString(string) } catch {
        throw DemoSettingsError("'connectionString' in devsettings.plist: \(error)")
      }
    } else if let namespace = text("notificationHubNamespace") {
      guard let keyName = text("notificationHubKeyName") else {
        throw DemoSettingsError(missing: "notificationHubKeyName")
      }
      guard let key = text("notificationHubKey") else {
        throw DemoSettingsError(missing: "notificationHubKey")
      }
      connection = ConnectionString(
        endpoint: namespace.contains(".")
          ? ServiceEndpoint(host: namespace) : ServiceEndpoint(namespace: namespace),
        keyName: keyName, key: key)
    } else if backend != nil {
      connection = nil
    } else {
      throw DemoSettingsError(missing: "notificationHubNamespace")
    }
    guard let hub = text("notificationHubName") ?? (connection == nil ? "" : nil) else {
      throw DemoSettingsError(missing: "notificationHubName")
    }
    self.hub = hub
  }
}

/// The error for invalid settings.
struct DemoSettingsError: LocalizedError, Hashable, CustomStringConvertible {
  let description: String
  var errorDescription: String? { description }

  init(_ description: String) { self.description = description }

  init(missing key: String) {
    self.init(
      "'\(key)' in devsettings.plist is missing, or has no value of its own yet; the README says where "
        + "to find it")
  }
}
