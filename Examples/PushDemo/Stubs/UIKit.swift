// What the example uses of UIKit, declared as the iOS SDK declares it, so that the example's Swift can
// be type-checked on systems without that SDK. Nothing here does anything.

@_exported import Foundation

@MainActor open class UIResponder: NSObject {
  public override init() { super.init() }
}

@MainActor public protocol UIApplicationDelegate: NSObjectProtocol {
  func application(
    _ application: UIApplication,
    didFinishLaunchingWithOptions launchOptions: [UIApplication.LaunchOptionsKey: Any]?
  ) -> Bool
  func application(
    _ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken deviceToken: Data
  )
  func application(
    _ application: UIApplication,
    didFailToRegisterForRemoteNotificationsWithError error: any Error)
  func application(
    _ application: UIApplication, didReceiveRemoteNotification userInfo: [AnyHashable: Any]
  ) async -> UIBackgroundFetchResult
  func applicationProtectedDataDidBecomeAvailable(_ application: UIApplication)
}

extension UIApplicationDelegate {
  public static func main() {}
}

public enum UIBackgroundFetchResult: UInt, Sendable {
  case newData
  case noData
  case failed
}

@MainActor open class UIApplication: UIResponder {
  public struct LaunchOptionsKey: Hashable, Sendable {}
  public static let shared = UIApplication()
  open weak var delegate: (any UIApplicationDelegate)?
  open func registerForRemoteNotifications() {}
}

@MainActor open class UIDevice: NSObject {
  public static let current = UIDevice()
  open var identifierForVendor: UUID? { nil }
}

@MainActor open class UIScene: UIResponder {
  @MainActor open class ConnectionOptions: NSObject {}
}

@MainActor open class UIWindowScene: UIScene {}

@MainActor open class UISceneSession: NSObject {}

@MainActor public protocol UISceneDelegate: NSObjectProtocol {
  func scene(
    _ scene: UIScene, willConnectTo session: UISceneSession,
    options connectionOptions: UIScene.ConnectionOptions)
}

@MainActor public protocol UIWindowSceneDelegate: UISceneDelegate {
  var window: UIWindow? { get set }
}

@MainActor open class UIView: UIResponder {
  public init(frame: CGRect) { super.init() }
  public override init() { super.init() }
  open var backgroundColor: UIColor?
  open var translatesAutoresizingMaskIntoConstraints = true
  open var layoutMarginsGuide: UILayoutGuide { UILayoutGuide() }
  open var leadingAnchor: NSLayoutXAxisAnchor { NSLayoutXAxisAnchor() }
  open var trailingAnchor: NSLayoutXAxisAnchor { NSLayoutXAxisAnchor() }
  open var centerYAnchor: NSLayoutYAxisAnchor { NSLayoutYAxisAnchor() }
  open func addSubview(_ view: UIView) {}
}

@MainActor open class UIWindow: UIView {
  public init(windowScene: UIWindowScene) { super.init(frame: .zero) }
  open var rootViewController: UIViewController?
  open func makeKeyAndVisible() {}
}

@MainActor open class UILayoutGuide: NSObject {
  open var leadingAnchor: NSLayoutXAxisAnchor { NSLayoutXAxisAnchor() }
  open var trailingAnchor: NSLayoutXAxisAnchor { NSLayoutXAxisAnchor() }
}

@MainActor open class NSLayoutAnchor<AnchorType: AnyObject>: NSObject {
  open func constraint(equalTo anchor: NSLayoutAnchor<AnchorType>) -> NSLayoutConstraint {
    NSLayoutConstraint()
  }
}
@MainActor open class NSLayoutXAxisAnchor: NSLayoutAnchor<NSLayoutXAxisAnchor> {}
@MainActor open class NSLayoutYAxisAnchor: NSLayoutAnchor<NSLayoutYAxisAnchor> {}
@MainActor open class NSLayoutConstraint: NSObject {
  open class func activate(_ constraints: [NSLayoutConstraint]) {}
}

open class UIColor: NSObject, @unchecked Sendable {
  // Immutable.
  public static let systemBackground = UIColor()
}

@MainActor open class UIViewController: UIResponder {
  open var view: UIView! {
    get { nil }
    set {}
  }
  open func viewDidLoad() {}
  open func viewDidAppear(_ animated: Bool) {}
  open func viewDidDisappear(_ animated: Bool) {}
  open func present(_ controller: UIViewController, animated: Bool) {}
}

@MainActor open class UIStackView: UIView {
  public convenience init(arrangedSubviews views: [UIView]) { self.init() }
  open var axis = NSLayoutConstraint.Axis.horizontal
  open var spacing: CGFloat = 0
}

extension NSLayoutConstraint {
  public enum Axis: Int, Sendable {
    case horizontal
    case vertical
  }
}

@MainActor open class UIControl: UIView {}

public enum UITextAutocapitalizationType: Int, Sendable {
  case none
  case words
}

@MainActor open class UITextField: UIControl {
  public enum BorderStyle: Int, Sendable {
    case none
    case roundedRect
  }
  open var text: String?
  open var placeholder: String?
  open var isSecureTextEntry = false
  open var autocapitalizationType = UITextAutocapitalizationType.words
  open var borderStyle = BorderStyle.none
}

@MainActor open class UIAction: NSObject {
  public init(title: String = "", handler: @escaping (UIAction) -> Void) { super.init() }
}

@MainActor open class UIButton: UIControl {
  public enum ButtonType: Int, Sendable {
    case custom
    case system
  }
  public convenience init(type: ButtonType = .system, primaryAction: UIAction?) { self.init() }
}

@MainActor open class UIAlertAction: NSObject {
  public enum Style: Int, Sendable {
    case `default`
  }
  public convenience init(
    title: String?, style: Style, handler: (@MainActor (UIAlertAction) -> Void)? = nil
  ) { self.init() }
}

@MainActor open class UIAlertController: UIViewController {
  public enum Style: Int, Sendable {
    case alert
  }
  public convenience init(title: String?, message: String?, preferredStyle: Style) { self.init() }
  open func addAction(_ action: UIAlertAction) {}
}
