import UIKit

/// The app's one window. An app built with an SDK after iOS 26 does not start without scenes.
final class SceneDelegate: UIResponder, UIWindowSceneDelegate {
  var window: UIWindow?

  func scene(
    _ scene: UIScene, willConnectTo session: UISceneSession,
    options connectionOptions: UIScene.ConnectionOptions
  ) {
    guard let scene = scene as? UIWindowScene,
      let delegate = UIApplication.shared.delegate as? AppDelegate
    else { return }
    let window = UIWindow(windowScene: scene)
    window.rootViewController = delegate.screen
    window.makeKeyAndVisible()
    self.window = window
  }
}
