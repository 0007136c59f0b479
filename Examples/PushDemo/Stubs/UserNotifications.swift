// The declarations that the device SDK and the example use of UserNotifications, as in the iOS SDK. Nothing
// here does anything; see UIKit.swift.

@_exported import Foundation

public struct UNAuthorizationOptions: OptionSet, Sendable {
  public let rawValue: UInt
  public init(rawValue: UInt) { self.rawValue = rawValue }
  public static let badge = UNAuthorizationOptions(rawValue: 1)
  public static let sound = UNAuthorizationOptions(rawValue: 2)
  public static let alert = UNAuthorizationOptions(rawValue: 4)
  public static let provisional = UNAuthorizationOptions(rawValue: 64)
}

public enum UNAuthorizationStatus: Int, Sendable {
  case notDetermined
  case denied
  case authorized
  case provisional
  case ephemeral
}

open class UNNotificationSettings: NSObject, @unchecked Sendable {
  // Immutable.
  open var authorizationStatus: UNAuthorizationStatus { .notDetermined }
}

public struct UNNotificationPresentationOptions: OptionSet, Sendable {
  public let rawValue: UInt
  public init(rawValue: UInt) { self.rawValue = rawValue }
  public static let sound = UNNotificationPresentationOptions(rawValue: 2)
  public static let list = UNNotificationPresentationOptions(rawValue: 8)
  public static let banner = UNNotificationPresentationOptions(rawValue: 16)
}

open class UNNotificationSound: NSObject {
  public class var `default`: UNNotificationSound { UNNotificationSound() }
}

open class UNNotificationAttachment: NSObject {
  public convenience init(
    identifier: String, url URL: URL, options: [AnyHashable: Any]? = nil
  ) throws { self.init() }
}

open class UNNotificationContent: NSObject, NSMutableCopying {
  open var title: String { "" }
  open var subtitle: String { "" }
  open var body: String { "" }
  open var userInfo: [AnyHashable: Any] { [:] }
  open func mutableCopy(with zone: NSZone? = nil) -> Any { UNMutableNotificationContent() }
}

open class UNMutableNotificationContent: UNNotificationContent {
  private var texts = ["", "", ""]
  private var info: [AnyHashable: Any] = [:]
  open override var title: String {
    get { texts[0] }
    set { texts[0] = newValue }
  }
  open override var subtitle: String {
    get { texts[1] }
    set { texts[1] = newValue }
  }
  open override var body: String {
    get { texts[2] }
    set { texts[2] = newValue }
  }
  open override var userInfo: [AnyHashable: Any] {
    get { info }
    set { info = newValue }
  }
  open var attachments: [UNNotificationAttachment] = []
  open var categoryIdentifier = ""
  open var threadIdentifier = ""
  open var sound: UNNotificationSound?
}

open class UNNotificationTrigger: NSObject {}

open class UNNotificationRequest: NSObject {
  public init(
    identifier: String, content: UNNotificationContent, trigger: UNNotificationTrigger?
  ) { super.init() }
  open var content: UNNotificationContent { UNNotificationContent() }
}

open class UNNotification: NSObject {
  open var request: UNNotificationRequest {
    UNNotificationRequest(identifier: "", content: UNNotificationContent(), trigger: nil)
  }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
public let UNNotificationDefaultActionIdentifier = "default"
// swift-format-ignore: AlwaysUseLowerCamelCase
public let UNNotificationDismissActionIdentifier = "dismiss"

open class UNNotificationResponse: NSObject {
  open var notification: UNNotification { UNNotification() }
  open var actionIdentifier: String { "" }
}

open class UNTextInputNotificationResponse: UNNotificationResponse {
  open var userText: String { "" }
}

public protocol UNUserNotificationCenterDelegate: NSObjectProtocol {
  func userNotificationCenter(
    _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
    withCompletionHandler completionHandler: @escaping (UNNotificationPresentationOptions) -> Void)
  func userNotificationCenter(
    _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
    withCompletionHandler completionHandler: @escaping () -> Void)
}

open class UNUserNotificationCenter: NSObject, @unchecked Sendable {
  // Thread-safe by its documentation.
  open class func current() -> UNUserNotificationCenter { UNUserNotificationCenter() }
  open weak var delegate: (any UNUserNotificationCenterDelegate)?
  open func notificationSettings() async -> UNNotificationSettings { UNNotificationSettings() }
  open func requestAuthorization(options: UNAuthorizationOptions = []) async throws -> Bool {
    false
  }
  open func add(_ request: UNNotificationRequest) async throws {}
}

open class UNNotificationServiceExtension: NSObject {
  open func didReceive(
    _ request: UNNotificationRequest,
    withContentHandler contentHandler: @escaping (UNNotificationContent) -> Void
  ) {}
  open func serviceExtensionTimeWillExpire() {}
}
