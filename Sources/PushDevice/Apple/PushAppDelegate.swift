#if canImport(UIKit) && canImport(UserNotifications) && !os(watchOS) && !os(tvOS)
  public import UIKit
  public import UserNotifications

  /// Passes the system's callbacks to a ``PushInstallation`` and ``PushEvents``. Nothing is swizzled:
  /// an app with a delegate of its own calls the same methods from there.
  ///
  /// ```swift
  /// final class AppDelegate: PushAppDelegate {
  ///   private let ownPush = PushInstallation(…)
  ///   override var push: PushInstallation? { ownPush }
  /// }
  /// ```
  /// A SwiftUI app names the class with `@UIApplicationDelegateAdaptor(AppDelegate.self)`.
  @available(iOSApplicationExtension, unavailable)
  @MainActor open class PushAppDelegate: UIResponder, UIApplicationDelegate {
    /// Taps, actions and background pushes for the user who is signed in.
    public private(set) lazy var events = PushEvents(storage: push?.storage)
    private var responder: NotificationResponder?

    /// The time that a request may take in the background. The system grants about 30 seconds.
    private static let backgroundTime = Duration.seconds(20)

    /// The app's installation; `nil` for an app that cannot register, for lack of settings.
    open var push: PushInstallation? { nil }

    /// Called at each launch; an app with an account at a backend starts that.
    open func start() async { await push?.start() }

    /// The way in which a notification is shown that arrives while the app is in the foreground.
    open func presentation(of message: PushMessage) -> UNNotificationPresentationOptions {
      [.banner, .list, .sound]
    }

    /// Called with a push that wakes the app, which has about 30 seconds then: neither with a
    /// duplicate nor with another user's. By default it is passed on as an event.
    open func received(_ message: PushMessage) async -> UIBackgroundFetchResult {
      events.deliver(.background(message))
      return .newData
    }

    open func application(
      _ application: UIApplication,
      didFinishLaunchingWithOptions launchOptions: [UIApplication.LaunchOptionsKey: Any]?
    ) -> Bool {
      // Set before the launch ends: a tap that launched the app is reported right after.
      let responder = NotificationResponder(events: events) { [weak self] message in
        self?.presentation(of: message) ?? []
      }
      self.responder = responder
      UNUserNotificationCenter.current().delegate = responder
      observe(UIApplication.willEnterForegroundNotification) { await $0?.didEnterForeground() }
      observe(UIApplication.didEnterBackgroundNotification) { push in
        await Self.inBackground {
          await push?.willLeaveForeground()
          await push?.settled(within: Self.backgroundTime)
        }
      }
      Task { await start() }
      return true
    }

    open func application(
      _ application: UIApplication,
      didRegisterForRemoteNotificationsWithDeviceToken deviceToken: Data
    ) {
      Task { await push?.didRegister(deviceToken: deviceToken) }
    }

    open func application(
      _ application: UIApplication,
      didFailToRegisterForRemoteNotificationsWithError error: any Error
    ) {
      let problem = TokenProblem(description: error.localizedDescription)
      Task { await push?.didFailToRegister(problem) }
    }

    open func applicationProtectedDataDidBecomeAvailable(_ application: UIApplication) {
      Task { await push?.protectedDataDidBecomeAvailable() }
    }

    open func application(
      _ application: UIApplication, didReceiveRemoteNotification userInfo: [AnyHashable: Any]
    ) async -> UIBackgroundFetchResult {
      guard let message = PushMessage(userInfo: userInfo), events.isForThisDevice(message),
        await events.isNew(message)
      else { return .noData }
      return await Self.inBackground { [self] in
        let result = await received(message)
        await push?.settled(within: Self.backgroundTime)
        return result
      }
    }

    /// - Parameter action: Gets ``push`` when the notification is posted.
    private func observe(
      _ name: Notification.Name, _ action: @escaping @Sendable (PushInstallation?) async -> Void
    ) {
      // The delegate lives as long as the process.
      _ = NotificationCenter.default.addObserver(forName: name, object: nil, queue: .main) {
        [weak self] _ in
        Task { @MainActor in await action(self?.push) }
      }
    }

    /// Asks the system for time to finish.
    private static func inBackground<Result: Sendable>(
      _ work: @MainActor @Sendable () async -> Result
    ) async -> Result {
      let time = BackgroundTime()
      let result = await work()
      time.end()
      return result
    }
  }

  /// Time that the system grants in the background, until it runs out.
  @available(iOSApplicationExtension, unavailable)
  @MainActor private final class BackgroundTime {
    private var task = UIBackgroundTaskIdentifier.invalid

    init() {
      // An app that does not end its task in time is ended itself.
      task = UIApplication.shared.beginBackgroundTask(withName: "push registration") {
        [weak self] in self?.end()
      }
    }

    func end() {
      guard task != .invalid else { return }
      UIApplication.shared.endBackgroundTask(task)
      task = .invalid
    }
  }

  /// The system's reason for issuing no token, as a value that may cross actors.
  private struct TokenProblem: Error, CustomStringConvertible {
    let description: String
  }
#endif
