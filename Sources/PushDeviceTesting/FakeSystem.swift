import NotificationHubs
public import PushDevice

/// An operating system that does what a test says.
public final class FakeSystem: PushSystem {
  private struct Contents {
    var facts = DeviceFacts(appVersion: "1.0", systemVersion: "18.0")
    var permission = PushPermission.undetermined
    var tokenRequests = 0
  }

  private let contents = Locked(Contents())

  /// Creates a system whose user has not decided about notifications.
  public init() {}

  /// The versions of app and system.
  public var facts: DeviceFacts {
    get { contents.withLock { $0.facts } }
    set { contents.withLock { $0.facts = newValue } }
  }

  /// The permission that the user has chosen.
  public var chosenPermission: PushPermission {
    get { contents.withLock { $0.permission } }
    set { contents.withLock { $0.permission = newValue } }
  }

  /// The number of times that the app has asked for a token.
  public var tokenRequests: Int { contents.withLock { $0.tokenRequests } }

  public func registerForRemoteNotifications() async {
    contents.withLock { $0.tokenRequests += 1 }
  }

  public func permission() async -> PushPermission { chosenPermission }

  /// The user agrees, unless they have refused before.
  public func requestPermission(_ options: PermissionOptions) async throws -> PushPermission {
    contents.withLock { contents in
      if contents.permission == .undetermined {
        contents.permission = options.contains(.provisional) ? .provisional : .authorized
      }
      return contents.permission
    }
  }
}
