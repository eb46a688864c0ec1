import com.hivemq.embedded.EmbeddedExtension;
import com.hivemq.embedded.EmbeddedHiveMQ;
import com.hivemq.extension.sdk.api.ExtensionMain;
import com.hivemq.extension.sdk.api.auth.SimpleAuthenticator;
import com.hivemq.extension.sdk.api.parameter.ExtensionStartInput;
import com.hivemq.extension.sdk.api.parameter.ExtensionStartOutput;
import com.hivemq.extension.sdk.api.parameter.ExtensionStopInput;
import com.hivemq.extension.sdk.api.parameter.ExtensionStopOutput;
import com.hivemq.extension.sdk.api.services.Services;
import java.nio.file.Files;
import java.nio.file.Path;

/** HiveMQ CE that lets everybody in. In: a folder with config.xml. Out: a line once it serves; it ends with SIGTERM. */
public final class Hive {
    /** Says who may come in; without one HiveMQ takes nobody. */
    static final class Everybody implements ExtensionMain {
        @Override
        public void extensionStart(ExtensionStartInput input, ExtensionStartOutput output) {
            SimpleAuthenticator all = (asked, answer) -> answer.authenticateSuccessfully();
            Services.securityRegistry().setAuthenticatorProvider(asked -> all);
        }

        @Override
        public void extensionStop(ExtensionStopInput input, ExtensionStopOutput output) {}
    }

    public static void main(String[] words) throws Exception {
        Path folder = Path.of(words[0]);
        for (String one : new String[] {"data", "extensions"}) {
            Files.createDirectories(folder.resolve(one));
        }
        EmbeddedExtension extension = EmbeddedExtension.builder()
                .withId("everybody").withName("everybody").withVersion("1").withPriority(0).withStartPriority(1000)
                .withExtensionMain(new Everybody()).build();
        EmbeddedHiveMQ server = EmbeddedHiveMQ.builder().withConfigurationFolder(folder)
                .withDataFolder(folder.resolve("data")).withExtensionsFolder(folder.resolve("extensions"))
                .withEmbeddedExtension(extension).build();
        server.start().join();
        System.out.println("{\"event\": \"running\"}");
        Thread.currentThread().join();
    }
}
